--[[
lock_acquire: take a lock, join the line, or enter once more what the owner holds.
KEYS[1] state (HASH v -> values, c:claim -> record, stem; STRING see state/thin)
KEYS[2] line (ZSET place-claim, h:, t:claim, - -> score, see state/score)
ARGV[1] claim id    ARGV[2] node and fixed terms, as the record ends
ARGV[3] lease of a plain claim (ms, else "")    ARGV[4] linger (ms)
ARGV[5] how ("" = by its ticket and for itself, else see owner/ask)    ARGV[6] the rest, see state/ask
RETURNS plain fence | {"granted", ticket, fence, left_ms, flags, setting}
  | {"reentered", ticket, fence, left_ms, flags, setting, extra}
  | {"queued", ticket, fence, left_ms, flags, setting, extra, place, ahead, next_ms}
  | {"held", held, waiting, swept, flags, setting} | {"ahead", held, waiting, swept, flags, setting}
  | {"crowded", held, waiting, swept, flags, setting} | {"deadlock", held, waiting, swept, flags, setting}
  | {"paused", held, waiting, swept, flags, setting, extra, left_ms, since, reason}
  | {"gone"} | {"foreign"} | {"incompatible", format}
REPLAY the same claim gets the same answer    COST O(log n) + O(entries) + at most 100 drops and grants
]]
local function fetch(keys, claim, ...)
  local time, members = redis.call("TIME"), redis.call("ZRANGE", keys[2], "0", "1")
  local thin = not members[1] and redis.call("MGET", keys[1])[1]
  if not thin then
    local fields = redis.pcall("HMGET", keys[1], "v", claim and "c:" .. claim or "c:", ...)
    if not fields.err then
      return time, fields, members[1], members[2]
    end
    thin = redis.call("MGET", keys[1])[1]
    if not thin then
      redis.call("HLEN", keys[1])
    end
  end
  return time, { false, false, false, thin = thin }, members[1]
end
local time, kept, top = fetch(KEYS, ARGV[1], "stem")
local function fast_acquire(t, v, keys, linger, claim, owned, lease, calm)
  local text, sub, format = v[1], string.sub, string.format
  local call = redis.call
  if not text or v[2] or text >= ("4") then
    return nil
  end
  local head, due, used = (("3 ") .. ((#((t))[1] < 10 and "0" or "") .. ((t))[1] .. string.sub("00000", #((t))[2]) .. ((t))[2])), sub(text, (34), (46)), sub(text, (76), (91))
  local now, most, taken = sub(head, (3), (15)), sub(calm, (9), (24)),
    (1000000000000000)
  if used ~= ("1000000000000000") then
    taken = tonumber(used)
  end
  if due <= now or not taken or used < ("1000000000000000") then
    return nil
  end
  local weight, wait, max, fits, all = 1, nil, "0", used < most, ("1000000000000001")
  if lease == "" then
    weight, wait, lease, max = string.match(owned, ("^%S+ %S+ (%d+) %a (%d+) (%d+) (%d+) "))
    fits = taken + weight - most <= 0
  end
  if not fits or sub(text, (93), (124)) ~= calm then
    if used < most or weight + (1000000000000000) - most > 0 then
      return nil
    end
    return nil, now, due
  end
  local exp, between = sub(text, (20), (34) - 2), (76)
  if now <= sub(text, (48), (60)) or sub(text, 1, (18)) >= head then
    return nil
  end
  local limit, phase, busy = (" 0000000000000 "), ("h "), ""
  local ends = now + lease
  if wait then
    if lease == "0" or lease - wait > 0 then
      phase, busy, between, ends = ("g "), now .. (" "), (62), now + wait
    elseif max ~= "0" then
      limit = format(("%013d"), now + max)
      ends, limit = math.min(ends, limit), (" ") .. limit .. (" ")
    end
  end
  local deadline, far = format(("%013d"), ends), ends + linger - exp > 0
  if call("ZADD", keys[2], ("1") .. deadline, "h:" .. claim, ("9007199254740991"), "-") == 2 then
    call("ZREM", keys[2], "h:" .. claim, "-")
    return nil
  end
  if taken == (1000000000000000) + (8) then
    call("ZADD", keys[2], ("9007199254740991"), ("-----------------------------------------------------------------"))
    call("ZREM", keys[2], ("-----------------------------------------------------------------"))
  end
  if deadline < due then
    due = deadline
  end
  if far then
    exp = format(("%013d"), math.min(math.ceil((ends + linger) / 1000) * 1000, (9999999999999)))
    call("PEXPIREAT", keys[1], exp)
    call("PEXPIREAT", keys[2], exp)
  end
  if taken > (1000000000000000) or weight ~= 1 then
    all = format("%d", taken + weight)
  end
  local fence = sub(head, (3))
  call("HSET", keys[1],
    "v", head .. (" ") .. exp .. (" ") .. due .. sub(text, (46) + 1, between - 1) .. busy
      .. all .. sub(text, (91) + 1),
    "c:" .. claim, phase .. now .. (" ") .. fence .. (" ") .. now .. limit .. owned)
  if not wait then
    return fence
  end
  return { "granted", now, fence, ends - now, phase == ("h ") and 1 or 0, most - (1000000000000000) }
end
local plain, moment, nearest = fast_acquire(time, kept, KEYS, ARGV[4], ARGV[1], ARGV[2], ARGV[3], ("1000000 1000000000000001 0 0 0 0"))
if plain then
  return plain
end
local function find_dead(state, line, from, to, ms)
  local fields, places, dead = {}, {}, {}
  for _, member in ipairs(redis.call("ZRANGE", line, from, to - 1)) do
    local place, claim = string.match(member, ("^(%d+)%-(.+)$"))
    if claim then
      fields[#fields + 1], places[#places + 1] = "c:" .. claim, place
    end
  end
  for i, text in ipairs(fields[1] and redis.call("HMGET", state, unpack(fields)) or fields) do
    local alive = string.match(text or "", ("^[wp] 0*(%d+) "))
    if not alive or alive - ms <= 0 then
      dead[#dead + 1], dead[#dead + 2] = string.sub(fields[i], 3), places[i]
    end
  end
  return dead, #places
end
local function fast_wait(now, due, v, top, keys, linger, claim, owned, calm, asked)
  local text, sub, format = v[1], string.sub, string.format
  local call = redis.call
  top = top or call("ZRANGE", keys[2], "0", "0")[1]
  local wait, lane = string.match(asked, ("^[12] (%d+) (%d+) "))
  local rest, count = sub(text, (124) + 1), tonumber(sub(text, (93), (99)))
  if not wait or not top or not count
    or sub(text, (99) + 1, (124)) ~= sub(calm, (9) - 1)
    or sub(owned, (17), (17)) ~= (" ") then
    return nil
  end
  local ends, ticket, last, ahead = now + wait, now, sub(text, (48), (60)), false
  local alive, mine = format(("%013d"), ends), count == (1000000)
  local lives = alive
  if now <= last then
    ticket = tonumber(last)
    ticket = ticket and format(("%013d"), ticket + 1)
  end
  if not mine then
    local first = sub(top, (15) - 1, (15) - 1) == ("-") and sub(top, (15))
      or select(2, string.match(top, ("^(%d+)%-(.+)$"))) or ""
    lives = call("HGET", keys[1], "c:" .. first)
    lives = lives and string.find(lives, ("^[wp] %d%d%d%d%d%d%d%d%d%d%d%d%d ")) and sub(lives, (3), (15)) or ""
    mine = sub(first, 1, (17)) == sub(claim, 1, (17))
  end
  if not ticket or lives <= now or not tonumber(due) then
    return nil
  end
  if ((ticket) % 16 == 0) then
local function fast_patrol(keys, waiting, rest, ms)
  local look, others = string.match(rest, ("^ (%d+)( .*)$"))
  local to = look ~= "0" and math.min(look, waiting) or waiting
  local from = math.max(to - 8, 0)
  if find_dead(keys[1], keys[2], from, to, ms)[1] then
    return nil
  end
  return (" ") .. string.format("%d", from) .. others
end
    rest = fast_patrol(keys, count - (1000000), rest, now + 0)
    if not rest then
      return nil
    end
  end
  local exp = sub(text, (20), (34) - 2)
  local far, member, head = ends + linger - exp > 0, ticket .. ("-") .. claim, sub(text, 1, (48) - 1)
  call("ZADD", keys[2], lane, member)
  if count == (1000000) + (8) then
    call("ZADD", keys[2], ("9007199254740991"), ("-----------------------------------------------------------------"))
    call("ZREM", keys[2], ("-----------------------------------------------------------------"))
  end
  if count > (1000000) then
    ahead = call("ZRANK", keys[2], member)
  end
  if not ahead or ahead == 0 then
    ahead, lives, mine = "0", alive, true
  end
  if far then
    exp = format(("%013d"), math.min(math.ceil((ends + linger) / 1000) * 1000, (9999999999999)))
    head = sub(text, 1, (20) - 1) .. exp .. (" ") .. due .. (" ")
    call("PEXPIREAT", keys[1], exp)
    call("PEXPIREAT", keys[2], exp)
  end
  call("HSET", keys[1],
    "v", head .. ticket .. sub(text, (62) - 1, (93) - 1) .. format("%d", count + 1)
      .. sub(calm, (9) - 1) .. rest,
    "c:" .. claim, ("w ") .. alive .. (" ") .. format(("%013d"), ends - wait / 2 + 0.5) .. (" ")
      .. ticket .. (" ") .. owned)
  if due < lives then
    lives = due
  end
  return format(mine and ("%s 1 %d %s") or ("%s 0 %d %s"), ticket, lives - now, ahead)
end
plain = moment and ARGV[5] == ""
  and fast_wait(moment, nearest, kept, top, KEYS, ARGV[4], ARGV[1], ARGV[2], ("1000000 1000000000000001 0 0 0 0"), ARGV[6])
if plain then
  return plain
end
local waits, _, lane, _, channel, name = string.match(ARGV[6], ("^(%d) (%d+) (%d+) (%S+) ([^{]*){(.*)$"))
local function record_read(text)
  local alive, ticket, place, node, terms, secret, weight, kind, wait, lease, max
  local phase, number, wanted, fence, granted, limit = string.sub(text, 1, 1), "", "", "0", "0", 0
  if phase == "w" then
    alive, ticket, node, terms, secret, weight, kind, wait, lease, max =
      string.match(text, "^w 0*(%d+) %d+ (%d+) (%S+) ((%S+) (%d+) (%a) (%d+) (%d+) (%d+) .*)$")
    place = ticket
  elseif phase == "p" then
    alive, ticket, place, node, terms, secret, weight, kind, wait, lease, max =
      string.match(text, "^p 0*(%d+) %d+ (%d+) (%d+) (%S+) ((%S+) (%d+) (%a) (%d+) (%d+) (%d+) .*)$")
    phase = "w"
  else
    phase, number, wanted, ticket, fence, granted, limit, node, terms, secret, weight, kind, wait, lease, max =
      string.match(text,
        "^(%a)(%d*)(!?%d*) (%d+) (%d+) (%d+) 0*(%d+) (%S+) ((%S+) (%d+) (%a) (%d+) (%d+) (%d+) .*)$")
  end
  if not terms then
    return nil
  end
  return {
    node = node, phase = phase, number = number, wanted = wanted, ticket = ticket, fence = fence, granted = granted,
    place = place or fence, alive = (alive or 0) + 0, limit = limit + 0, terms = terms, weight = weight + 0,
    secret = secret, kind = kind, wait = wait + 0, lease = lease + 0, max = max + 0,
  }
end
local function thin_record(st)
  local hold = st.thin
  if not hold.r then
    hold.text = string.format(("h %s %016d %s %013d "), hold.granted, st.fence, hold.granted, hold.limit) .. hold.node .. " "
      .. hold.terms
    hold.r = record_read(hold.text)
    hold.r.held = hold.held
  end
  return hold
end
local function kind_open(keys, linger, channel, name, claim, t, v, top)
local function open(keys, linger, channel, name, claim, t, v, top)
local function now(t)
  local seconds, micros = t[1] + 0, t[2] + 0
  return seconds * 1000 + (micros - micros % 1000) / 1000, seconds * 1000000 + micros
end
  local ms, us = now(t)
  local known, st, newer = v[2]
  if top == false then
    top = redis.call("ZRANGE", keys[2], "0", "0")[1]
  end
local function load(text)
  local fmt, fence, exp, due, ticket, busy, used, waiting, cap, few = string.match(text or "", ("^(%d+) 0*(%d+) 0*(%d+) 0*(%d+) 0*(%d+) 0*(%d+) (%d+) (%d+) (%d+) (%-?%d+ %-?%d+ %d+ %d+ %d+ %d+)$"))
  local capacity, until_then = cap and cap - (1000000000000000) or 0, (exp or 0) + 0
  local st = {
    fmt = (fmt or 0) + 0, fence = (fence or 0) + 0, exp = until_then,
    due = due ~= ("9999999999999") and (due or 0) + 0 or 0,
    ticket = (ticket or 0) + 0, busy = (busy or 0) + 0, cap = capacity, used = used and used - (1000000000000000) or 0,
    waiting = waiting and waiting - (1000000) or 0,
    gone = 0, forever = 0, keep = 0, pause = 0, look = 0, rev = 0,
    was_used = used and used - (1000000000000000) or 0, was_cap = capacity, was_exp = until_then, was_rev = 0,
    was_never = false, form = fmt and "fat",
  }
  if few and few ~= ("0 0 0 0 0 0") then
    local keep, rev = string.match(few, ("^0 0 (%d+) 0 0 (%d+)$"))
    if keep then
      st.keep, st.rev = keep + 0, rev + 0
    else
      local gone, forever, pause, look
      gone, forever, keep, pause, look, rev = string.match(few, ("^(%-?%d+) (%-?%d+) (%d+) (%d+) (%d+) (%d+)$"))
      st.gone, st.forever, st.keep = gone + 0, forever + 0, keep + 0
      st.pause, st.look, st.rev = pause + 0, look + 0, rev + 0
    end
    st.was_rev, st.was_never = st.rev, st.forever > 0 or st.keep > 0
  end
  if text and (st.fmt < (3) or st.fmt > (3)) then
    local number = tonumber(string.match(text, ("^%d+")) or 0)
    return st, (number < (3) or number > (3)) and number or 0
  end
  return st
end
  if v.thin then
local function thin_open(state, text, ms)
local function thin_read(text, ms)
  local st = load(false)
  local number = string.match(text, ("^f(%d+) "))
  if number then
    return st, tonumber(number)
  end
  local fence, since, claim, node, terms = string.match(text, ("^(%d+) (%d+) ((%S+)%.[^%s.]+) (%S+ 1 .*)$"))
  local weight, _, lease, max = string.match(terms or "", ("^%S+ (%d+) %a (%d+) (%d+) (%d+) "))
  if not claim and string.find(text, ("^%d+ %d+ %S+ 1 %S+ %a %d+ ")) then
    return st, 2
  end
  if claim and (#fence ~= 16 or #since ~= 13 or not weight) or not claim and not string.find(text, ("^%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d$")) then
    return nil
  end
  st.fmt, st.form, st.cap, st.was_cap = (3), "thin", 1, 1
  st.fence = string.sub(text, 1, (17) - 1) + 0
  if claim then
    local granted, held, limit = string.sub(text, 1, (13)), since + lease, 0
    if max ~= "0" then
      limit = granted + max
      held = math.min(held, limit)
    end
    st.thin = { claim = claim, node = node, granted = granted, terms = terms, held = held, limit = limit }
    if held > ms then
      st.used, st.due = 1, held
    end
  end
  return st
end
  local st, newer = thin_read(text, ms)
  if not st then
    redis.call("HLEN", state)
  end
  return st, newer
end
    st, newer = thin_open(keys[1], v.thin, ms)
    if st.thin and st.thin.claim == claim then
      known = thin_record(st).text
    end
  else
    st, newer = load(v[1])
    if st.form and not top then
      st.used, st.waiting, st.gone, st.forever, st.due, st.look = 0, 0, 0, 0, 0, 0
    elseif not st.form and not newer then
      newer = tonumber(redis.call("HGET", keys[1], "fmt") or nil)
    end
    if st.pause <= ms then
      st.pause = 0
    end
  end
  return {
    state = keys[1], line = keys[2], linger = linger + 0, channel = channel, name = name,
    ms = ms, us = us, head = top, newer = newer,
  }, st, known
end
  local at, st, known = open(keys, linger, channel, name, claim, t, v, top)
  st.group_text = v[3]
  return at, st, known
end
local at, st, known = kind_open(KEYS, ARGV[4], channel, name, ARGV[1], time, kept, top)
local function record_new(node, terms)
  local weight, wait, lease, max = string.match(terms, ("^%S+ (%d+) %a (%d+) (%d+) (%d+) "))
  return {
    node = node, phase = "w", number = "", wanted = "", limit = 0, terms = terms, alive = 0,
    weight = weight + 0, wait = wait + 0, lease = lease + 0, max = max + 0, held = 0, changed = true,
  }
end
local function owner_ask(text, ask)
  local conflict, access, draw, owner = string.match(text, ("^(%a+) (%a+) (%d+) (.*)$"))
  ask.conflict, ask.access, ask.draw = conflict, access or "queued", tonumber(draw or 0)
  ask.owner = owner ~= "" and owner or nil
  return ask
end
local function acquire(at, st, known, ask)
  if at.newer then
    return { "incompatible", at.newer }
  end
  local claim, r, budget = ask.claim, ask.r, { left = 100 - (0), swept = 0 }
  local reply, was, held
local function record_write(r)
  if r.phase ~= "w" then
    return r.phase .. r.number .. r.wanted .. " " .. r.ticket .. " " .. r.fence .. " " .. r.granted .. " "
      .. (r.limit == 0 and ("0000000000000") or string.format("%013d", r.limit)) .. " " .. r.node .. " " .. r.terms
  end
  local lives = string.format("%013d %013d ", r.alive, r.alive - math.floor(r.wait / 2))
  local place = r.place == r.ticket and "" or r.place .. " "
  return (place == "" and "w " or "p ") .. lives .. r.ticket .. " " .. place .. r.node .. " " .. r.terms
end
local function fatten(at, st, grows, claim)
  if st.form == "fat" and at.head then
    return
  end
  local hold, anew = st.thin, st.form == "thin" or st.form and not st.pool
  if hold and st.used == 0 then
    hold = hold.claim == claim and hold
    st.used, st.due = hold and 1 or 0, hold and hold.held or 0
  end
  local members = { ("9007199254740991"), "-" }
  if hold then
    members[3], members[4] = (string.format("%d", ((10000000000000) + hold.held))), "h:" .. hold.claim
  end
  if grows then
    redis.call("ZADD", at.line, unpack(members))
  end
  if anew then
    redis.call("DEL", at.state)
  else
    redis.call("HDEL", at.state, "c:")
  end
  if at.head then
    redis.call("UNLINK", at.line)
  end
  if not grows or at.head then
    redis.call("ZADD", at.line, unpack(members))
  end
  if hold then
    redis.call("HSET", at.state, "c:" .. hold.claim, thin_record(st).text)
    st.exp = math.ceil((hold.held + at.linger) / 1000) * 1000
  end
  if (false) and not st.form then
    (false)(at)
  end
  st.form, st.thin, st.group_text, at.head = "fat", nil, anew and false or st.group_text, "-"
  st.was_exp, st.was_never, st.busy = 0, false, at.ms
end
local function kind_enter(at, st, ask, holds, swept, more)
local function group_entry(claim, kind, ext, came, pending, call, fresh)
  return { claim = claim, kind = kind, ext = ext, at = came, pending = pending, call = call, fresh = fresh }
end
local function live_group(at, st, left, r)
  if st.group then
    return st.group
  end
local function group_read(text, fence)
  local of, count, worked_at, extended, last, extended_at, more, own, deadline, call, rest = string.match(text,
    "^(%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%S+)(.*)$")
  if of ~= (string.format("%d", (fence))) then
    return nil
  end
  local s = {
    count = count + 0, worked_at = worked_at + 0, extended = extended + 0, last = last + 0,
    extended_at = extended_at + 0, more = more + 0, own = own + 0, deadline = deadline + 0, call = call, entries = {},
  }
  for claim, kind, ext, came, pending, id, fresh in string.gmatch(rest, " (%S+) (%a) (%d+) (%d+) (%d+) (%S+) ([01])") do
    s.entries[#s.entries + 1] = group_entry(claim, kind, ext + 0, came + 0, pending + 0, id, fresh == "1")
  end
  return s
end
  local s = st.group_text and group_read(st.group_text, st.fence)
  if not s then
    local sole = left or st.thin and "h:" .. st.thin.claim
      or redis.call("ZRANGEBYSCORE", at.line, "(" .. (string.format("%d", ((10000000000000) + at.ms))), ("19999999999999"),
        "LIMIT", "0", "1")[1]
    if not sole then
      return nil
    end
local function group_new(claim)
  return {
    count = 0, worked_at = 0, extended = 0, last = 0, extended_at = 0, more = 0, call = "-",
    entries = { group_entry(claim, "o", 0, 0, 0, "-", false) },
  }
end
    s = group_new(left or string.sub(sole, 3))
  end
  local members, fields, live, unheard = {}, {}, {}, {}
  for i, e in ipairs(s.entries) do
    members[i], fields[i] = "h:" .. e.claim, "c:" .. e.claim
  end
  local scores, texts = {}, st.thin and { thin_record(st).text }
  if not texts then
    scores = redis.call("ZMSCORE", at.line, unpack(members))
    texts = redis.call("HMGET", at.state, unpack(fields))
  end
  for i, e in ipairs(s.entries) do
    e.r = e.claim == left and r or texts[i] and record_read(texts[i]) or nil
    if e.r and e.claim ~= left then
      e.r.held, e.r.changed = st.thin and st.thin.held or scores[i] and tonumber(scores[i]) - (10000000000000), false
    end
    if e.r and e.r.held and e.r.held > at.ms then
      local list = e.fresh and unheard or live
      list[#list + 1] = e
    end
  end
  for _, e in ipairs(unheard) do
    live[#live + 1] = e
  end
  s.entries = live
  if not live[1] then
    return nil
  end
  s.own, s.deadline = s.own or live[1].r.held, s.deadline or live[1].r.held
  st.group = s
  return s
end
  local s = st.used > 0 and live_group(at, st)
local function find_entry(s, claim)
  for i, e in ipairs(s and s.entries or {}) do
    if e.claim == claim then
      return e, i
    end
  end
  return nil
end
  local e = holds and find_entry(s, ask.claim)
local function reentered(at, s, e, more)
  local r, settled = e.r, s.entries[1].r.phase ~= "g"
  local flags = (e.pending == 0 and not e.fresh and 1 or 0) + (more and 2 or 0)
local function remaining(at, deadline)
  return deadline >= (9999999999999) and -1 or deadline - at.ms
end
local function entry_remaining(at, s, e)
  local outer, ends = s.entries[1], e.r.held
  if e ~= outer and outer.r.lease > 0 then
    ends = math.min(ends, at.ms + outer.r.lease + s.more)
  end
  if e ~= outer and e.r.max > 0 and e.r.limit == 0 then
    ends = math.min(ends, at.ms + e.r.max)
  end
  return ((ends) >= (9999999999999) and -1 or (ends) - (at).ms)
end
  return { "reentered", tonumber(r.ticket), tonumber(r.fence), entry_remaining(at, s, e), flags, 0,
    string.format("%d %s %d %d %d", r.lease, r.kind, r.limit > 0 and r.limit - at.ms or -1, e.ext + e.pending,
      settled and remaining(at, s.deadline) or -1) }
end
  if holds then
    return e and e.kind ~= "o" and reentered(at, s, e, false) or nil
  end
local function record_owner(claim, r)
  local size, from = string.match(r.terms, "^%S+ %d+ %a %d+ %d+ %d+ %-?%d+ (%d+):()")
  if size == "0" then
    return claim
  end
  return string.sub(r.terms, from, from + size - 1)
end
  local outer = s and record_owner(s.entries[1].claim, s.entries[1].r) == ask.owner and s.entries[1].r
  if not outer then
    return nil
  elseif ask.conflict == "work" or ask.conflict == "extend" then
    if #s.entries >= 100 then
      return { "crowded", st.used, st.waiting, swept, more and 2 or 0 }
    end
    fatten(at, st, true)
local function reenter(at, st, s, claim, r, extends)
local function batch()
  return { scores = {}, fields = {} }
end
  local outer, m = s.entries[1].r, batch()
  local e = group_entry(claim, extends and "e" or "w", 0, at.ms, 0, "-",
    outer.phase ~= "g" and s.deadline > at.ms + r.wait)
  local limit = r.max > 0 and at.ms + r.max or 0
  if outer.limit > 0 and (limit == 0 or outer.limit < limit) then
    limit = outer.limit
  end
  if extends and s.deadline < (9999999999999) then
    local whole = r.lease
    if r.max > 0 and (whole == 0 or r.max < whole) then
      whole = r.max
    end
    e.ext = math.min(whole, r.wait)
    e.pending = whole - e.ext
    s.deadline, s.more, s.extended = s.deadline + e.ext, s.more + e.ext, s.extended + e.ext
    s.last, s.extended_at = whole, at.ms
  elseif extends then
    s.last, s.extended_at = r.lease, at.ms
  else
    s.worked_at = at.ms
  end
  s.count, e.r = s.count + 1, r
  s.entries[#s.entries + 1] = e
local function record_terms(r, kind, lease, max)
  local first, wait, rest = string.match(r.terms, "^(%S+ %d+ )%a( %d+ )%d+ %d+( .*)$")
  r.kind, r.lease, r.max = kind, lease, max
  r.terms = first .. kind .. wait .. string.format("%d %d", lease, max) .. rest
end
local function batch_write(at, st, m)
  if m.scores[1] then
    redis.call("ZADD", at.line, unpack(m.scores))
    st.due = nil
  end
end
local function set_deadlines(st, s, m)
  if s.deadline > (9999999999999) then
    s.own, s.deadline = math.min(s.own, (9999999999999) - 1), (9999999999999) - 1
  end
local function batch_hold(m, claim, r, ends)
  if ends < r.held then
    m.sooner = math.min(m.sooner or ends, ends)
  end
  if ends ~= r.held then
    m.scores[#m.scores + 1], m.scores[#m.scores + 2] = (string.format("%d", ((10000000000000) + ends))), "h:" .. claim
    r.held = ends
  end
  if ends < (9999999999999) then
    m.furthest = math.max(m.furthest or 0, ends)
  end
  if r.changed then
    r.text = record_write(r)
    m.fields[#m.fields + 1], m.fields[#m.fields + 2] = "c:" .. claim, r.text
  end
end
  for _, e in ipairs(s.entries) do
    local ends = e.r.limit > 0 and math.min(s.deadline, e.r.limit) or s.deadline
    if e.fresh then
      ends = math.min(ends, e.at + e.r.wait)
    end
    batch_hold(m, e.claim, e.r, ends)
  end
  if s.count > 0 or s.more > 0 then
local function group_write(s, fence)
  local parts = { string.format("%d %d %d %d %d %d %d %d %d ", fence, s.count, s.worked_at, s.extended, s.last,
    s.extended_at, s.more, s.own, s.deadline) .. s.call }
  for n, e in ipairs(s.entries) do
    parts[n + 1] = e.claim .. " " .. e.kind .. string.format(" %d %d %d ", e.ext, e.at, e.pending) .. e.call
      .. (e.fresh and " 1" or " 0")
  end
  return table.concat(parts, " ")
end
    m.fields[#m.fields + 1], m.fields[#m.fields + 2] = "stem", group_write(s, st.fence)
  end
end
  local max = limit > 0 and math.max(limit - at.ms, 1) or outer.phase == "g" and outer.max or 0
  record_terms(r, outer.kind, outer.lease, max)
  r.limit, r.fence, r.granted = limit, outer.fence, string.format(("%013d"), at.ms)
  r.phase = (outer.phase == "g" or e.fresh) and "g" or "h"
  st.forever = st.forever + ((r).lease == 0 and (r).max == 0 and (r).phase ~= "g" and (r).phase ~= "w" and 1 or 0)
  st.used = st.used + 1
  set_deadlines(st, s, m)
  batch_write(at, st, m)
  return e, m
end
    local entry, m = reenter(at, st, s, ask.claim, ask.r, ask.conflict == "extend")
    return reentered(at, s, entry, more), m.fields, m.furthest
  end
  local stays = outer.max == 0 and (outer.lease == 0 or outer.kind == "r" and outer.phase ~= "d")
  if ask.conflict == "fail" or stays and ask.endless then
    return { "deadlock", st.used, st.waiting, swept, more and 2 or 0 }
  end
end
local function first(line)
  local head = redis.call("ZRANGE", line, "0", "0", "WITHSCORES")
  local place, claim = string.match(head[1] or "", ("^(%d+)%-(.+)$"))
  if claim and head[2] + 0 <= (511) then
    return claim, place, tonumber(head[2])
  end
  return nil
end
local function earliest(at, st)
  if not st.due then
    local hold = st.used > 0 and redis.call("ZRANGEBYSCORE", at.line, ("10000000000000"), ("19999999999998"),
      "WITHSCORES", "LIMIT", "0", "1")[2]
    st.due = hold and tonumber(hold) - (10000000000000) or 0
  end
  return st.due
end
local function soonest(at, st)
  if st.pause > 0 then
    return st.pause
  end
  local low, moment = earliest(at, st), (false) and (false)(at, st)
  if low == 0 then
    return moment or false
  end
  return moment and math.min(low, moment) or low
end
local function first_waiter(at)
  local claim = first(at.line)
  return claim, claim and redis.call("HGET", at.state, "c:" .. claim)
end
local function reply_granted(at, st, r, fence, deadline, more, extra)
  local flags = (r.phase == "g" and 0 or 1) + (more and 2 or 0)
  local setting = (false) and (false)(st) or st.cap
  return { "granted", tonumber(r.ticket), fence, ((deadline) >= (9999999999999) and -1 or (deadline) - (at).ms), flags, setting, extra or nil }
end
local function reply_queued(at, st, claim, r, lane, more)
  local apart, moment, mine
  if (false) and st.pause == 0 then
    apart, moment, mine = (false)(at, claim, r)
  end
  local next_ms = moment and math.max(moment - at.ms, 0) or -1
  if not apart then
local function next_deadline(at, st, node)
  if st.waiting <= 0 then
    return -1, false
  end
  local next_at, claim, text = soonest(at, st), first_waiter(at)
  if text and st.pause == 0 then
    next_at = math.min(next_at or math.huge, (string.match(text, ("^[wp] 0*(%d+) ")) or 0) + 0)
  end
  local mine = claim and string.sub(claim, 1, #node + 1) == node .. "."
  return next_at and math.max(next_at - at.ms, 0) or -1, mine
end
    next_ms, mine = next_deadline(at, st, r.node)
  end
  local flags = ((false) and 8 or 0) + (more and 2 or 0) + (mine and 4 or 0)
  local setting = (false) and (false)(st) or st.cap
  local stands, ahead
  if (false) then
    stands, ahead = (false)(at, claim, r)
  end
  return { "queued", tonumber(r.ticket), 0, r.alive - at.ms, flags, setting, "",
    stands or string.format(("%03d %s"), lane, r.place),
    ahead or redis.call("ZRANK", at.line, r.place .. ("-") .. claim), next_ms }
end
  if known then
local function replay(at, st, known, ask)
  local was = record_read(known)
  if not was then
    return { "gone" }
  elseif was.node ~= ask.r.node then
    return { "foreign" }
  end
local function hold_ends(at, st, claim)
  if st and st.form == "thin" then
    return st.thin and st.thin.claim == claim and st.thin.held or nil
  end
  local score = tonumber(redis.call("ZSCORE", at.line, "h:" .. claim))
  return score and score - (10000000000000)
end
  local held = hold_ends(at, st, ask.claim)
  if held and held > at.ms then
    return ask.owner and (true) and kind_enter(at, st, ask, true)
      or reply_granted(at, st, was, tonumber(was.fence), held, false, st.extra)
  end
  local lane = was.phase == "w" and was.alive > at.ms
    and tonumber(redis.call("ZSCORE", at.line, was.place .. ("-") .. ask.claim))
  if lane then
    return reply_queued(at, st, ask.claim, was, lane)
  elseif st.form == "thin" then
    return nil
  end
  return nil, was, held
end
    reply, was, held = replay(at, st, known, ask)
  end
local function kind_refuse(_, st)
  st.cap = 1
end
  reply = reply or (true) and kind_refuse(at, st, ask)
  if reply then
    return reply
  end
local function kind_full(_, st)
  return st.waiting > 0 or st.used > 0
end
  local full, sooner, fields, furthest = kind_full(at, st, r), nil, nil, nil
local function record_sums(text)
  local phase, terms, weight, lease, max = string.match(text or "",
    "^(%a)[%d! ]+ %S+ (%S+ (%d+) %a %d+ (%d+) (%d+) .*)$")
  if not terms then
    return 0, 0, nil
  end
  return weight + 0, lease == "0" and max == "0" and not string.find("gwp", phase, 1, true) and 1 or 0, terms
end
local function recount(at, st)
  if st.recounted then
    return
  end
  st.recounted, st.due = true, nil
  st.waiting = redis.call("ZCOUNT", at.line, "0", ("9999999999999"))
  if st.pool then
    st.pool.parked = redis.call("ZCOUNT", at.line, ("512"), ("9999999999999"))
  end
  st.gone = redis.call("ZCOUNT", at.line, ("2600000000000000"), ("2609999999999999"))
  local holds = redis.call("ZRANGEBYSCORE", at.line, ("10000000000000"), ("19999999999999"),
    "LIMIT", "0", "101")
  if #holds > 100 then
    return
  end
  st.used, st.forever = 0, 0
  local fields = { "c:" }
  for i, member in ipairs(holds) do
    fields[i] = "c:" .. string.sub(member, 3)
  end
  for _, text in ipairs(redis.call("HMGET", at.state, unpack(fields))) do
    local weight, forever = record_sums(text)
    st.used, st.forever = st.used + weight, st.forever + forever
  end
end
local function leave(at, st, claim, r, deadline, word, stays, wish)
  local absent = false
  if deadline then
    redis.call("ZREM", at.line, "h:" .. claim)
    st.used, st.due = st.used - r.weight, deadline ~= st.due and st.due or nil
    st.forever = st.forever - ((r).lease == 0 and (r).max == 0 and (r).phase ~= "g" and (r).phase ~= "w" and 1 or 0)
  elseif redis.call("ZREM", at.line, r.place .. ("-") .. claim) > 0 then
    st.waiting = st.waiting - 1
  else
    absent = true
    recount(at, st)
  end
  if not deadline and (false) then
    (false)(at, st, claim, r.place, absent)
  end
  if word then
local function add_tombstone(at, st, claim, stays)
  redis.call("ZADD", at.line, (string.format("%d", ((260 * 10000000000000) + at.ms + stays))), "t:" .. claim)
  st.gone = st.gone + 1
end
    redis.call("HSET", at.state, "c:" .. claim, ("!") .. word)
    add_tombstone(at, st, claim, stays)
  else
    redis.call("HDEL", at.state, "c:" .. claim)
  end
  if (false) then
    return (false)(at, st, claim, r, deadline, wish)
  end
end
local function leave_place(at, st, claim, place, r)
  if r and r.phase == "w" and r.place == place then
    leave(at, st, claim, r)
  else
    redis.call("ZREM", at.line, place .. ("-") .. claim)
    st.waiting = st.waiting - 1
    if (false) then
      (false)(at, st, claim, place)
    end
  end
end
local function wake(at, node, ...)
  local parts = { ... }
  for i, field in ipairs(parts) do
    field = type(field) == "number" and (string.format("%d", (field))) or field
    parts[i] = string.format("%d:", #field) .. field
  end
  at.out = at.out or {}
  at.out[#at.out + 1], at.out[#at.out + 2] = at.channel .. node, table.concat(parts)
end
local function kind_next(at, st, budget, arrival)
  if not arrival and st.used > 0 then
    return nil
  end
local function head(at, st, budget, arrival)
  while ((st).pool and (st).waiting - (st).pool.parked or (st).waiting) > 0 and (arrival or budget.left > 0) do
    local claim, place, lane = first(at.line)
    if not claim and not arrival then
      st.waiting = st.waiting - ((st).pool and (st).waiting - (st).pool.parked or (st).waiting)
    end
    if not claim or arrival and (arrival.lane - lane < 0 or arrival.lane + 0 == lane and arrival.place < place) then
      break
    elseif arrival then
      return claim
    end
    local text = redis.call("HGET", at.state, "c:" .. claim)
    local r = text and record_read(text)
    local alive = r and r.place == place and r.alive > at.ms
    local heavy = alive and (false) and (false)(st, r)
    if alive and not heavy then
      return claim, r, lane
    end
    leave_place(at, st, claim, place, r)
    if heavy then
      wake(at, r.node, "too_heavy", at.name, claim, st.cap)
    end
    budget.left, budget.swept = budget.left - 1, budget.swept + 1
  end
  if arrival then
    return arrival.claim, arrival.r
  end
end
  local claim, r = head(at, st, budget, arrival)
  return claim, r, r and st.used < 1
end
local function notify(at, st, deadline, claim, r)
  if ((st).pool and (st).waiting - (st).pool.parked or (st).waiting) <= 0 or not deadline then
    return
  end
  local next_at = deadline ~= true and deadline <= at.ms and deadline or soonest(at, st)
  if not next_at or deadline ~= true and deadline ~= next_at then
    return
  end
  if not r then
    claim, r = first_waiter(at)
    r = r and record_read(r)
  end
  if claim and r then
local function notify_node(at, r, next_at)
  if next_at <= at.ms or next_at < r.alive - r.wait / 2 then
    wake(at, r.node, "next", at.name, math.max(next_at - at.ms, 0))
    return true
  end
  return false
end
    notify_node(at, r, next_at)
  end
end
  if was or full then
local function clear(at, st, ask, was, held, budget, full)
  local head_left, sooner = false, nil
  if was then
    local _
    if not held and at.head == was.place .. ("-") .. ask.claim then
      head_left = true
    end
    _, _, sooner = leave(at, st, ask.claim, was, held)
    budget.left, full = budget.left - 1, kind_full(at, st, ask.r)
  end
  if full then
local function least(a, b)
  return a and b and math.min(a, b) or a or b
end
local function expire(at, st, budget)
  local sooner, before = nil, budget.left
  if st.gone > 0 or st.used > 0 and st.form == "fat" and earliest(at, st) <= at.ms then
local function expire_claims(at, st, budget)
  local sooner = nil
local function expired(at, budget, from)
  local members, fields = {}, {}
  if budget.left > 0 then
    members = redis.call("ZRANGEBYSCORE", at.line, (string.format("%d", (from))), (string.format("%d", (from + at.ms))), "LIMIT", "0", (string.format("%d", (budget.left))))
  end
  for i, member in ipairs(members) do
    fields[i] = "c:" .. string.sub(member, 3)
  end
  return members, fields
end
local function expire_drop(at, budget, members, fields)
  redis.call("ZREM", at.line, unpack(members))
  redis.call("HDEL", at.state, unpack(fields))
  budget.left = budget.left - #fields
end
  if st.used > 0 and st.form == "fat" then
    if earliest(at, st) > 0 and st.due <= at.ms then
local function expire_holds(at, st, budget)
  local holds, fields = expired(at, budget, (10000000000000))
  if #holds == 0 then
    return nil
  end
  local records = redis.call("HMGET", at.state, unpack(fields))
  for i, text in ipairs(records) do
    local weight, forever, terms = record_sums(text)
    st.used, st.forever, records[i] = st.used - weight, st.forever - forever, terms or false
  end
  local deadlines, sooner = (false) and redis.call("ZMSCORE", at.line, unpack(holds)), nil
  expire_drop(at, budget, holds, fields)
  for i, member in ipairs((false) and holds or {}) do
    local ends = (false)(at, st, string.sub(member, 3), records[i], tonumber(deadlines[i]) - (10000000000000))
    sooner = ends and math.min(sooner or ends, ends) or sooner
  end
  return sooner
end
      sooner, st.due = expire_holds(at, st, budget), nil
    end
    if earliest(at, st) == 0 and not redis.call("ZRANGEBYSCORE", at.line, ("10000000000000"), ("19999999999999"),
      "LIMIT", "0", "1")[1] then
      st.used, st.forever = 0, 0
    end
  end
  local tombs, fields = {}, nil
  if st.gone > 0 then
    tombs, fields = expired(at, budget, (260 * 10000000000000))
  end
  if tombs[1] then
    st.gone = st.gone - #tombs
    expire_drop(at, budget, tombs, fields)
  end
  return sooner
end
    sooner = expire_claims(at, st, budget)
  end
  if (false) then
    (false)(at, st, budget)
  end
  budget.swept = budget.swept + before - budget.left
  return sooner
end
    sooner = least(sooner, expire(at, st, budget))
    if ask.waits and st.waiting > 0 and ((math.max(st.ticket + 1, at.ms)) % 16 == 0) then
local function patrol(at, st, budget, places)
  local to = st.look > 0 and math.min(st.look, st.waiting) or st.waiting
  st.look = math.max(to - places, 0)
  local dead, seen = find_dead(at.state, at.line, st.look, to, at.ms)
  if seen < to - st.look then
    recount(at, st)
    st.look = math.max(math.min(st.look, st.waiting), 0)
  end
  for i = 1, math.min(#dead, 2 * budget.left), 2 do
    local text = redis.call("HGET", at.state, "c:" .. dead[i])
    leave_place(at, st, dead[i], dead[i + 1], text and record_read(text))
    budget.left, budget.swept, st.met = budget.left - 1, budget.swept + 1, true
  end
  return dead[1] and st.look == 0, dead[1]
end
      head_left = patrol(at, st, budget, 8) or head_left
    end
local function handoff(at, st, budget, head_left)
  if st.waiting <= 0 then
    return
  end
  if st.pause > 0 then
    notify(at, st, head_left or st.moved)
    return
  end
  while st.waiting > 0 and budget.left > 0 do
    local waiting = st.waiting
    local claim, r, what = kind_next(at, st, budget)
    head_left = head_left or st.waiting < waiting
    if not what then
      if budget.left > 0 then
        notify(at, st, head_left or st.moved, claim, r)
        return
      end
      break
    end
    local got, field
    st.fence = math.max(st.fence + 1, at.us)
    r.fence = string.format(("%016d"), st.fence)
    if (false) then
      got, field = (false)(at, st, claim, what)
    end
    local alive, place = r.alive, r.place
    st.used, st.due = st.used + r.weight, st.due and (st.due == 0 and alive or math.min(st.due, alive))
    st.waiting, st.busy = st.waiting - 1, at.ms
    r.phase, r.granted = "g", string.format(("%013d"), at.ms)
    redis.call("ZREM", at.line, place .. ("-") .. claim)
    if (false) then
      (false)(at, st, claim, place)
    end
    redis.call("ZADD", at.line, (string.format("%d", ((10000000000000) + alive))), "h:" .. claim)
    redis.call("HSET", at.state, unpack({ "c:" .. claim, record_write(r), field, got }))
    wake(at, r.node, "granted", at.name, claim, r.fence, string.format(("%013d"), alive - at.ms), got or "", r.secret)
    head_left, budget.left = true, budget.left - 1
  end
  if st.waiting > 0 then
    notify(at, st, at.ms)
  end
end
    handoff(at, st, budget, head_left)
  end
  return sooner
end
    sooner = clear(at, st, ask, was, held, budget, full)
  end
  r.ticket = was and was.phase == "w" and was.ticket or string.format(("%013d"), math.max(st.ticket + 1, at.ms))
  if ask.owner and (true) then
    reply, fields, furthest = kind_enter(at, st, ask, false, budget.swept, budget.left <= 0)
  end
  local what, more = nil, st.met or budget.left <= 0
  if not reply then
    ask.place = r.ticket
    if (true) then
local function place_access(at, ask)
  local lane = ask.lane
  if ask.access == "lifo" then
    ask.lane, ask.place = lane + 1, string.format(("%013d"), 9999999999999 - ask.place)
  end
  local others = ask.access == "random" and redis.call("ZCOUNT", at.line, lane, lane) or 0
  local rank = math.floor(ask.draw / 4294967296 * (others + 1))
  if rank >= others then
    return
  end
  local from = redis.call("ZCOUNT", at.line, "0", "(" .. lane) + rank
  local members = redis.call("ZRANGE", at.line, (string.format("%d", (math.max(from - 1, 0)))), (string.format("%d", (from))))
  local right = string.match(members[#members], ("^(%d+)%-(.+)$"))
  if rank == 0 then
    ask.place = string.format(("%013d"), string.sub(right, 1, (13)) - 1) .. "5"
  else
local function place_between(left, right)
  if left >= right or #left > 100 or #right > 100 then
    return left
  end
  local from, to = tonumber(string.sub(left, 1, (13))), tonumber(string.sub(right, 1, (13)))
  if to - from > 1 then
    return string.format(("%013d"), from + math.floor((to - from) / 2))
  end
  local low, high, digits = string.sub(left, (13) + 1), to == from and string.sub(right, (13) + 1), {}
  for n = 1, #low + #(high or "") + 1 do
    local a = tonumber(string.sub(low, n, n)) or 0
    local b = high and (tonumber(string.sub(high, n, n)) or 0) or 10
    if b - a > 1 then
      digits[n] = math.floor((a + b) / 2)
      break
    end
    digits[n], high = a, a == b and high or false
  end
  return string.sub(left, 1, (13)) .. table.concat(digits)
end
    ask.place = place_between(string.match(members[1], ("^(%d+)%-(.+)$")), right)
  end
end
      place_access(at, ask)
    end
    budget.left = budget.left + (0)
    local before, _ = budget.left, nil
    if st.pause == 0 then
      _, _, what = kind_next(at, st, budget, ask)
    end
    if st.met or budget.left <= (0) or not what and budget.left < before then
      more = true
    end
    if not what and not ask.waits then
local function kind_refused(_, st, _, swept, more)
  return { st.used < 1 and "ahead" or "held", st.used, st.waiting, swept, more and 2 or 0 }
end
local function reply_paused(at, st, swept, more)
local function pause_read(at, st)
  local p, what = { since = 0 }, nil
  if st.form == "fat" then
local function revision_read(at, field, text)
  text = text == nil and redis.call("HGET", at.state, field) or text
  if not text then
    return 0, nil, nil
  end
  local rev, by, what = string.match(text, "^(%d+) (%S+) (.*)$")
  return (rev or 0) + 0, by, what
end
    p.since, p.by, what = revision_read(at, "pause")
  end
  local notice, own, all, size, why = string.match(what or "", "^(%d+) (%d+) (%d+) (%d+) (.*)$")
  size = (size or 0) + 0
  p.notice, p.own, p.all = (notice or 0) + 0, (own or 0) + 0, (all or 0) + 0
  p.why, p.why_all = string.sub(why or "", 1, size), string.sub(why or "", size + 1)
  return p
end
  local p = pause_read(at, st)
  local setting = (false) and (false)(st) or st.cap
  return { "paused", st.used, st.waiting, swept, more and 2 or 0, setting, "", st.pause - at.ms, p.since,
    p.all > p.own and p.why_all or p.why }
end
      reply = st.pause > 0 and reply_paused(at, st, budget.swept, more) or kind_refused(at, st, ask, budget.swept, more)
    end
  end
local function save(at, st, furthest, fields)
local function slim(at, st)
  local calm = at.ms - 10000
  if st.used > 0 or st.waiting > 0 or st.gone > 0 or st.keep > 0 or st.pause > 0 or st.cap ~= 1 or st.group_text
    or st.busy > calm and st.busy <= at.ms or st.ticket > calm or st.rev > at.ms - (60000) or st.fence >= at.us then
    return false
  end
  redis.call("UNLINK", at.line)
  redis.call("SET", at.state, string.format(("%016d"), st.fence), "PX", (string.format("%d", (at.linger))))
  return true
end
  if (true) and not fields and slim(at, st) then
    return
  end
  if st.gone > 0 or st.forever > 0 or st.keep > 0 then
    st.busy = at.ms
  end
  local own, uses = (false) and (false)(at, st), (3)
  local never = st.forever > 0 or st.keep > 0
  local last = furthest or at.ms
  local idle = st.used <= 0 and st.waiting <= 0 and st.exp > at.ms + 2 * at.linger + 1000
  if idle and st.gone > 0 then
    local stone = redis.call("ZREVRANGEBYSCORE", at.line, ("2609999999999999"), ("2600000000000000"),
      "WITHSCORES", "LIMIT", "0", "1")[2]
    last = math.max(last, stone and tonumber(stone) - (260 * 10000000000000) or 0)
  end
  if st.rev > at.ms - (60000) and (idle or st.rev ~= st.was_rev)
    and not (st.pool and st.keep > 0) then
    last = math.max(last, math.min(st.rev, at.ms + 1000) + (60000))
  end
  last = math.max(last, st.pause)
  local exp = math.ceil((last + at.linger) / 1000) * 1000
  if st.pool and never and st.was_never and st.pause == 0 and not furthest then
    exp = st.exp
  end
  st.exp = math.min(idle and exp or math.max(st.exp, exp), (9999999999999))
  local few = ("0 0 0 0 0 0")
  if st.gone ~= 0 or st.forever ~= 0 or st.pause ~= 0 or st.look ~= 0 then
    few = string.format(("%d %d %d %d %d %d"), st.gone, st.forever, st.keep, st.pause, st.look, st.rev)
  elseif st.keep ~= 0 or st.rev ~= 0 then
    few = string.format(("0 0 %d 0 0 %d"), st.keep, st.rev)
  end
  local due = earliest(at, st)
  if due == 0 or due > (9999999999999) then
    due = (9999999999999)
  end
  local all = { "v", string.format(("%d %016d %013d %013d %013d %013d %d %d %d "), uses, st.fence, st.exp, due, st.ticket, st.busy,
    (1000000000000000) + math.max(st.used, 0), (1000000) + math.max(st.waiting, 0), (1000000000000000) + st.cap) .. few,
    unpack(fields or {}) }
  if own then
    all[#all + 1], all[#all + 2] = "pool", own
  end
  redis.call("HSET", at.state, unpack(all))
  if never == st.was_never and (never or st.exp == st.was_exp) then
    return
  end
  for _, key in ipairs({ at.state, at.line, unpack(at.others or {}) }) do
    if never then
      redis.call("PERSIST", key)
    else
      redis.call("PEXPIREAT", key, (string.format("%d", (st.exp))))
    end
  end
end
local function publish(at)
  for i = 1, at.out and #at.out or 0, 2 do
    redis.pcall("PUBLISH", at.out[i], at.out[i + 1])
  end
end
  if reply then
    if fields or budget.left < 100 or st.touched or st.cap ~= st.was_cap then
      fatten(at, st, true)
      save(at, st, furthest, fields)
      notify(at, st, sooner)
    end
    publish(at)
    return reply
  end
local function thin_fits(at, st, claim, r)
  return st.form ~= "fat" and st.cap == 1 and r.weight == 1 and st.fence < at.us
    and r.lease > 0 and r.lease <= math.min(r.wait, at.linger) and #r.terms <= 512
    and string.match(claim, ("^(%S+)%.[^%s.]+$")) == r.node
end
  if what and (true) and thin_fits(at, st, claim, r) then
local function thin_grant(at, st, claim, r)
  if at.head then
    redis.call("UNLINK", at.line)
  end
  st.fence = at.us
  r.phase = "h"
  r.limit = r.max > 0 and at.ms + r.max or 0
local function thin_write(at, fence, since, claim, r)
  local ends = since + r.lease
  if r.limit > 0 then
    ends = math.min(ends, r.limit)
  end
local function thin_text(fence, since, claim, terms)
  return string.format(("%016d %013d "), fence, since) .. claim .. (" ") .. terms
end
  redis.call("SET", at.state, thin_text(fence, since, claim, r.terms),
    "PX", (string.format("%d", (since - at.ms + r.lease + at.linger))))
  return ends
end
  return thin_write(at, st.fence, at.ms, claim, r)
end
    local ends = thin_grant(at, st, claim, r)
    return reply_granted(at, st, r, st.fence, ends, more)
  end
  fatten(at, st, true)
  local deadline, extra, field = at.ms + r.wait, nil, nil
  if what then
local function grant(at, st, claim, r)
  st.fence = math.max(st.fence + 1, at.us)
  r.fence, r.granted = string.format(("%016d"), st.fence), string.format(("%013d"), at.ms)
  local deadline = at.ms + r.wait
  if r.lease == 0 or r.lease > r.wait then
    r.phase, st.busy = "g", at.ms
  else
    r.phase, deadline = "h", at.ms + r.lease
    if r.max > 0 then
      r.limit = at.ms + r.max
      deadline = math.min(deadline, r.limit)
    end
  end
  st.used, st.due = st.used + r.weight, st.due and (st.due == 0 and deadline or math.min(st.due, deadline))
  redis.call("ZADD", at.line, (string.format("%d", ((10000000000000) + deadline))), "h:" .. claim)
  return deadline
end
    deadline = grant(at, st, claim, r)
    if (false) then
      extra, field = (false)(at, st, claim, what)
    end
    sooner = ((sooner) and (deadline) and math.min((sooner), (deadline)) or (sooner) or (deadline))
  else
    r.place, r.alive = ask.place, deadline
    if ask.apart then
      (false)(at, st, claim, r, ask.lane, ask.apart)
    else
      redis.call("ZADD", at.line, ask.lane, r.place .. ("-") .. claim)
    end
    st.waiting, st.ticket = st.waiting + 1, math.max(st.ticket, tonumber(r.ticket))
  end
  save(at, st, deadline, { "c:" .. claim, record_write(r), field, extra })
  notify(at, st, sooner)
  publish(at)
  if what then
    return reply_granted(at, st, r, tonumber(r.fence), deadline, more, extra)
  end
  return reply_queued(at, st, claim, r, ask.lane, more)
end
return acquire(at, st, known, owner_ask(ARGV[5], {
  claim = ARGV[1], waits = waits ~= "0", endless = waits == "2", lane = lane,
  r = record_new(string.match(ARGV[2], ("^(%S+) (.*)$"))),
}))
