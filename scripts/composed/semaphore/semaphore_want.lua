--[[
semaphore_want: ask the holder of a claim to give it back, and have its node hear at once.
KEYS[1] state (HASH v -> values, c:claim -> record; STRING see state/thin)
KEYS[2] line (ZSET place-claim, h:, t:claim, - -> score, see state/score)
ARGV[1] linger (ms)    ARGV[2] channel prefix    ARGV[3] name
ARGV[4] node ("" = any)    ARGV[5] claim id
RETURNS {"wanted", ago_ms, fence, detached} | {"waits"} | {"expired"} | {"not_held", word} | {"incompatible", format}
REPLAY it has been wanted since the first call    COST O(log n)
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
local at, st, known = open(KEYS, ARGV[1], ARGV[2], ARGV[3], ARGV[5], fetch(KEYS, ARGV[5]))
local function want(at, st, known, claim, node)
  if at.newer then
    return { "incompatible", at.newer }
  end
  local r = known and record_read(known)
  if not r then
    return { "not_held", string.match(known or "", ("^!(.*)$")) or "" }
  elseif node ~= "" and r.node ~= node then
    return { "not_held", "" }
  elseif r.phase == "w" then
    return { "waits" }
  end
local function hold_ends(at, st, claim)
  if st and st.form == "thin" then
    return st.thin and st.thin.claim == claim and st.thin.held or nil
  end
  local score = tonumber(redis.call("ZSCORE", at.line, "h:" .. claim))
  return score and score - (10000000000000)
end
  local held, new = hold_ends(at, st, claim), r.wanted == ""
  if not held then
    return { "not_held", "" }
  elseif held <= at.ms then
    return { "expired" }
  end
local function record_want(r, ms)
  if r.wanted == "" then
    r.wanted = string.format("!%d", ms)
  end
  return string.sub(r.wanted, 2) + 0
end
  local since = record_want(r, at.ms)
local function record_write(r)
  if r.phase ~= "w" then
    return r.phase .. r.number .. r.wanted .. " " .. r.ticket .. " " .. r.fence .. " " .. r.granted .. " "
      .. (r.limit == 0 and ("0000000000000") or string.format("%013d", r.limit)) .. " " .. r.node .. " " .. r.terms
  end
  local lives = string.format("%013d %013d ", r.alive, r.alive - math.floor(r.wait / 2))
  local place = r.place == r.ticket and "" or r.place .. " "
  return (place == "" and "w " or "p ") .. lives .. r.ticket .. " " .. place .. r.node .. " " .. r.terms
end
  if new and st.form == "thin" then
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
local function earliest(at, st)
  if not st.due then
    local hold = st.used > 0 and redis.call("ZRANGEBYSCORE", at.line, ("10000000000000"), ("19999999999998"),
      "WITHSCORES", "LIMIT", "0", "1")[2]
    st.due = hold and tonumber(hold) - (10000000000000) or 0
  end
  return st.due
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
    fatten(at, st, false, claim)
    save(at, st, held, { "c:" .. claim, record_write(r) })
  elseif new then
local function touch(at, st)
  if st.was_never then
    redis.call("PERSIST", at.line)
  else
    redis.call("PEXPIREAT", at.line, (string.format("%d", (st.exp > at.ms and st.exp or at.ms + at.linger))))
  end
end
    touch(at, st)
    redis.call("HSET", at.state, "c:" .. claim, record_write(r))
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
local function publish(at)
  for i = 1, at.out and #at.out or 0, 2 do
    redis.pcall("PUBLISH", at.out[i], at.out[i + 1])
  end
end
  wake(at, r.node, "wanted", at.name, claim)
  publish(at)
  return { "wanted", math.max(at.ms - since, 0), tonumber(r.fence), r.phase == "d" and 1 or 0 }
end
return want(at, st, known, ARGV[5], ARGV[4])
