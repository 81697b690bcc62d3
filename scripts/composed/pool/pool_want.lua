--[[
pool_want: ask the holder of a claim to give it back, and have its node hear at once.
KEYS[1] state (HASH v -> values, c:claim -> record, r:claim -> resource, s:resource -> settings)
KEYS[2] line (ZSET place-claim, h:, t:claim, e:, x:, d:resource, u:binding, - -> score, see state/score)
KEYS[3] items (HASH i:resource -> item)
KEYS[4] free (ZSET resource -> its turn)
KEYS[5] bindings (HASH b:name -> end, resource)
ARGV[1] linger (ms)    ARGV[2] channel prefix    ARGV[3] name
ARGV[4] node ("" = any)    ARGV[5] claim id
RETURNS {"wanted", ago_ms, fence, detached} | {"waits"} | {"expired"} | {"not_held", word} | {"incompatible", format}
REPLAY it has been wanted since the first call    COST O(log n)
]]
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
local function pool_open(keys, linger, channel, name, claim, t, v, top)
  if not t then
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
    t, v, top = fetch(keys, claim, "pool", "r:" .. (claim or ""))
  end
  if v.thin then
    redis.call("HLEN", keys[1])
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
local function pool_counts(text, used)
  if not text then
    return {
      resources = 0, free = 0, leased = 0, leaving = 0, gen = 0, parked = 0, filled = false, settings = ("- - - - - - -"),
    }
  end
  local resources, gen, apart, others, parked, leaving, filled, settings = string.match(text, ("^(%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d) (%S %S %S.*)$"))
  return resources and {
    resources = resources - (1000000000000000), free = resources - (1000000000000000) - used - (apart - (2000000000000000)),
    leased = used + apart - others, leaving = leaving - (1000000000000000), gen = gen + 0,
    parked = parked - (1000000000000000), filled = filled == "1", settings = settings,
  } or nil
end
  local at, st, known = open(keys, linger, channel, name, claim, t, v, top)
  at.items, at.free, at.bindings = keys[3], keys[4], keys[5]
  at.others = { at.items, at.free, at.bindings }
  st.pool, st.counts = pool_counts(v[3], st.was_used), v[3]
  at.newer = at.newer or not st.pool and 0 or nil
  if st.pool and st.form and not at.head then
    st.pool.parked = 0
  end
  st.waiting = math.max(st.waiting, st.pool and st.pool.parked or 0)
  local held = v[4]
  if held == nil and known then
    held = redis.call("HGET", keys[1], "r:" .. claim)
  end
  st.claim, st.extra = claim, held or ""
  return at, st, known
end
local at, st, known = pool_open(KEYS, ARGV[1], ARGV[2], ARGV[3], ARGV[5])
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
local function wake(at, node, ...)
  local parts = { ... }
  for i, field in ipairs(parts) do
    field = type(field) == "number" and (string.format("%d", (field))) or field
    parts[i] = string.format("%d:", #field) .. field
  end
  at.out = at.out or {}
  at.out[#at.out + 1], at.out[#at.out + 2] = at.channel .. node, table.concat(parts)
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
  if (true) and not st.form then
local function pool_fresh(at)
  for _, key in ipairs(at.others) do
    if (key == at.free and redis.call("ZCARD", key) or redis.call("HLEN", key)) > 0 then
      redis.call("UNLINK", key)
    end
  end
  redis.call("HSET", at.items, "v", ("-----------------------------------------------------------------"))
  redis.call("ZADD", at.free, ("9007199254740991"), "", ("9007199254740991"), ("-----------------------------------------------------------------"))
  redis.call("ZREM", at.free, ("-----------------------------------------------------------------"))
  redis.call("ZADD", at.line, ("9007199254740991"), ("-----------------------------------------------------------------"))
  redis.call("ZREM", at.line, ("-----------------------------------------------------------------"))
  redis.call("HSET", at.bindings, "v", "1")
end
    pool_fresh(at)
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
  if (false) and not fields and slim(at, st) then
    return
  end
  if st.gone > 0 or st.forever > 0 or st.keep > 0 then
    st.busy = at.ms
  end
local function kind_save(at, st)
  if st.touched then
local function lanes_keep(at, st)
  local told
  local budget = { left = 0, swept = 0 }
local function least(a, b)
  return a and b and math.min(a, b) or a or b
end
local function item_read(at, key, text)
  text = text or redis.call("HGET", at.items, "i" .. key)
  if not text then
    return nil
  end
  local max, expiry, ends, pend, rev, flags, count, from = string.match(
    text, "^(%d+) (%d+) (%d+) (%d+) (%d+) ([0-3]) (%d+) ()")
  if not from then
    return nil, true
  end
  local i, most = {
    max = max + 0, expiry = expiry + 0, ends = ends + 0, pend = pend + 0, rev = rev + 0,
    leaving = flags == "1" or flags == "3", own = flags + 0 > 1, claims = {}, reason = "", listed = false, was = false,
  }, (9999999999999)
  if i.max == 0 or i.max > most or i.expiry > most or i.ends > most or i.pend > most or i.rev > most then
    return nil, true
  end
  for n = 1, count + 0 do
    i.claims[n], from = string.match(text, "^(%S+) ()", from)
    if not from then
      return nil, true
    end
  end
  i.reason = string.sub(text, from)
  i.listed = not i.leaving and i.ends == 0 and #i.claims < i.max
  i.was = { ends = i.ends, expiry = i.expiry, leased = #i.claims > 0, leaving = i.leaving }
  return i
end
local function item_moment(i)
  local rest = i.ends > 0 and i.ends < (9999999999999) and i.ends or nil
  return least(rest, i.expiry > 0 and i.expiry or nil)
end
local function lane_first(at, key, number)
  local member = redis.call("ZRANGEBYSCORE", at.line, number, number, "LIMIT", "0", "1")[1]
  local place, claim = string.match(member or "", ("^(%d+)%-(.+)$"))
  if not claim then
    return nil
  end
  local texts = redis.call("HMGET", at.state, "c:" .. claim, "q:" .. claim)
  if select(2, string.match(texts[2] or "", ("^(%S+) (.*)$"))) == key then
    return place, claim, texts[1]
  end
end
local function notify_node(at, r, next_at)
  if next_at <= at.ms or next_at < r.alive - r.wait / 2 then
    wake(at, r.node, "next", at.name, math.max(next_at - at.ms, 0))
    return true
  end
  return false
end
local function lanes_wait(at, st, lane, item, ends, budget)
  if ends then
    redis.call("ZADD", at.line, (string.format("%d", ((258 * 10000000000000) + ends))), "w:" .. lane.key)
  else
    redis.call("ZREM", at.line, "w:" .. lane.key)
  end
local function lanes_head(at, st, lane, budget)
local function lane_end(at, st, key)
  redis.call("HDEL", at.state, "l:" .. key)
  redis.call("ZREM", at.line, "w:" .. key)
  if st.touched and st.touched[key] then
    st.touched[key].over, st.touched[key] = true, nil
  end
end
local function leave_place(at, st, claim, place, r)
local function lane_touch(at, st, key)
  local known = st.touched and st.touched[key]
  local number = not known and ((st).pool.parked > 0 and redis.call("HGET", (at).state, "l:" .. (key)) or nil)
  if number then
    st.touched = st.touched or {}
    known = { key = key, number = number }
    st.touched[key], st.touched[#st.touched + 1] = known, known
  end
  if known then
    known.dirty, known.order = true, nil
  end
end
local function lane_leave(at, st, claim, place, absent)
  if #place ~= (16) then
    return
  end
  local text = redis.call("HGET", at.state, "q:" .. claim)
  local ends, key = string.match(text or "", ("^(%S+) (.*)$"))
  if not absent then
    st.pool.parked = math.max(st.pool.parked - 1, 0)
  end
  if not key then
    return
  end
  redis.call("HDEL", at.state, "q:" .. claim)
  if ends ~= ("-") and ends ~= "0" then
    redis.call("ZREM", at.line, "p:" .. claim)
  end
  local number = redis.call("HGET", at.state, "l:" .. key)
  if number and not lane_first(at, key, number) then
    lane_end(at, st, key)
  else
    lane_touch(at, st, key)
  end
end
  if r and r.phase == "w" and r.place == place then
local function leave(at, st, claim, r, deadline, word, stays, wish)
  local absent = false
  if deadline then
    redis.call("ZREM", at.line, "h:" .. claim)
    st.used, st.due = st.used - r.weight, deadline ~= st.due and st.due or nil
    st.forever = st.forever - ((r).lease == 0 and (r).max == 0 and (r).phase ~= "g" and (r).phase ~= "w" and 1 or 0)
  elseif redis.call("ZREM", at.line, r.place .. ("-") .. claim) > 0 then
    st.waiting = st.waiting - 1
  else
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
local function record_sums(text)
  local phase, terms, weight, lease, max = string.match(text or "",
    "^(%a)[%d! ]+ %S+ (%S+ (%d+) %a %d+ (%d+) (%d+) .*)$")
  if not terms then
    return 0, 0, nil
  end
  return weight + 0, lease == "0" and max == "0" and not string.find("gwp", phase, 1, true) and 1 or 0, terms
end
  for _, text in ipairs(redis.call("HMGET", at.state, unpack(fields))) do
    local weight, forever = record_sums(text)
    st.used, st.forever = st.used + weight, st.forever + forever
  end
end
    absent = true
    recount(at, st)
  end
  if not deadline and (true) then
    lane_leave(at, st, claim, r.place, absent)
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
  if (true) then
local function holding_end(at, st, claim, r, deadline, wish)
local function holding_of(at, st, claim)
  if claim == st.claim then
    return st.extra ~= "" and st.extra or nil
  end
  return redis.call("HGET", at.state, "r:" .. claim) or nil
end
  local key = holding_of(at, st, claim)
  if not key then
    return 1
  end
  local heard = wish and deadline and deadline > at.ms and tonumber(r.fence) == tonumber(wish.fence)
  local rest = heard and wish.rest or 0
  local from, reason = math.min(at.ms, deadline or at.ms), rest > 0 and wish.reason or ""
local function wants_back(terms)
local function record_extra(terms)
  local extra = string.match(terms, ("^%S+ %d+ %a %d+ %d+ %d+ %-?%d+ 0:0:0:%d+:(.*)$"))
  if extra then
    return extra
  end
  local from = string.match(terms, "^%S+ %d+ %a %d+ %d+ %d+ %-?%d+ ()")
  local size, after
  for _ = 1, 4 do
    size, after = string.match(terms, "^(%d+):()", from)
    from = after + size
  end
  return string.sub(terms, after, from - 1)
end
  local kind, cooldown = string.match(record_extra(terms), ("^(%a) (%d+) "))
  return { shared = kind == "s", alone = kind == "a", cooldown = tonumber(cooldown) }
end
local function release_resource(at, st, claim, key, w, from, rest, reason, expiry)
  redis.call("HDEL", at.state, "r:" .. claim)
  local i, bad = item_read(at, key)
local function free_drop(at, key)
  local dropped = redis.call("ZREM", at.free, key)
  return dropped == 1
end
  if bad then
local function damaged(at, st, key, ended)
  local p = st.pool
  local known = tonumber(redis.call("ZSCORE", at.line, "d:" .. key))
  local score = known or (268 * 10000000000000)
  if ended and (score - (268 * 10000000000000)) % 2 == 0 then
    p.leased, score = math.max(p.leased - 1, 0), score + 1
  end
  if score ~= known then
    redis.call("ZADD", at.line, (string.format("%d", (score))), "d:" .. key)
  end
  local listed = free_drop(at, key)
  p.free = listed and p.free - 1 or p.free
  st.met = st.met or not known
  return listed
end
    damaged(at, st, key, not (w and w.shared))
    return true, nil
  elseif not i then
    return false, nil
  end
local function remove_claim(at, i, claim, ends, reason)
  local count, rests = #i.claims, nil
  for n = count, 1, -1 do
    if i.claims[n] == claim then
      table.remove(i.claims, n)
    end
  end
  if #i.claims == count then
    return false, nil
  end
  if i.pend > 0 then
    local until_then = at.ms + i.pend
    if until_then > ends then
      ends, reason = until_then, i.reason
    end
    i.pend = 0
  end
  if i.expiry > 0 and i.expiry <= at.ms then
    i.leaving = true
  elseif ends > at.ms and ends > i.ends then
    i.ends, i.reason = math.min(ends, (9999999999999)), reason
    rests = i.ends
  end
  if i.ends == 0 then
    i.reason = ""
  end
  return true, rests
end
local function cooldown_end(at, st, key, i, w, from, rest, reason)
local function cooldown_of(at, st, key, i, w)
  local asked = w and w.cooldown or 0
  if w and w.alone then
    return asked
  end
local function settings_own(at, key, i)
  if not i.own then
    return nil, nil, nil
  end
  local cooldown, sharers, bindfor = string.match(redis.call("HGET", at.state, "s:" .. key) or "", ("^(%S+) (%S+) (%S+)$"))
  return tonumber(cooldown), tonumber(sharers), tonumber(bindfor)
end
  local own = settings_own(at, key, i)
local function settings_of(st)
  local p = st.pool
  if p.settings == ("- - - - - - -") then
    return {}
  elseif p.set_of ~= p.settings then
    local _, policy, cooldown, sharers, bindfor, lease, hold = string.match(p.settings, ("^(%S) (%S) (%S+) (%S+) (%S+) (%S+) (%S+)$"))
    p.set_of, p.set = p.settings, {
      policy = policy ~= "-" and policy or nil, cooldown = tonumber(cooldown), sharers = tonumber(sharers),
      bindfor = tonumber(bindfor), lease = tonumber(lease), hold = tonumber(hold),
    }
  end
  return p.set
end
  return math.max(asked, own or settings_of(st).cooldown or 0)
end
  local cooldown = cooldown_of(at, st, key, i, w)
  local ends = cooldown > 0 and from + cooldown or 0
  if rest > 0 and at.ms + rest >= ends then
    return at.ms + rest, reason
  end
  return ends, ""
end
  local was_there, rests = remove_claim(at, i, claim, cooldown_end(at, st, key, i, w, from, rest, reason))
  if was_there and expiry > 0 and not i.leaving then
    i.expiry = math.min(at.ms + expiry, (9999999999999) - 1)
  end
  if was_there then
local function settle(at, st, key, i)
  local p, was, leased = st.pool, i.was, #i.claims > 0
  local gone = i.leaving and not leased
  local listed = not i.leaving and i.ends == 0 and #i.claims < i.max
  if i.ends ~= was.ends and i.ends > 0 and not gone then
    redis.call("ZADD", at.line, (string.format("%d", ((262 * 10000000000000) + i.ends))), "e:" .. key)
  elseif was.ends > 0 and (gone or i.ends == 0) then
    redis.call("ZREM", at.line, "e:" .. key)
  end
  local leaves = gone and 0 or i.leaving and (9999999999999) or i.expiry
  local left = was.leaving and (9999999999999) or was.expiry
  if leaves == 0 and left > 0 then
    redis.call("ZREM", at.line, "x:" .. key)
  elseif leaves > 0 and leaves ~= left then
    redis.call("ZADD", at.line, (string.format("%d", ((264 * 10000000000000) + leaves))), "x:" .. key)
  end
  if gone then
    redis.call("HDEL", at.items, "i" .. key)
    if i.own then
      redis.call("HDEL", at.state, "s:" .. key)
    end
    p.resources = p.resources - 1
  else
    redis.call("HSET", at.items, "i" .. key, (string.format("%d %d %d %d %d %d %d ", (i).max, (i).expiry, (i).ends, (i).pend, (i).rev,
    ((i).leaving and 1 or 0) + ((i).own and 2 or 0), #(i).claims)
    .. ((i).claims[1] and table.concat((i).claims, (" ")) .. (" ") or "") .. (i).reason))
  end
  if i.listed and not listed then
    free_drop(at, key)
    p.free = p.free - 1
  elseif listed and not i.listed then
local function free_push(at, st, key)
  st.fence = math.max(st.fence + 1, at.us)
  redis.call("ZADD", at.free, (string.format("%d", (st.fence))), key, ("9007199254740991"), "")
end
    free_push(at, st, key)
    p.free = p.free + 1
  end
  p.leased = p.leased + (leased and 1 or 0) - (was.leased and 1 or 0)
  p.leaving = p.leaving + (i.leaving and not gone and 1 or 0) - (was.leaving and 1 or 0)
  lane_touch(at, st, key)
  i.listed, was.ends, was.expiry, was.leased, was.leaving = listed, i.ends, i.expiry, leased, i.leaving
end
    settle(at, st, key, i)
  end
  return not i.leaving, rests
end
  local stays, rests = release_resource(at, st, claim, key, wants_back(r.terms), from, rest, reason,
    heard and wish.expiry or 0)
  return stays and 1 or 0, nil, rests
end
    return holding_end(at, st, claim, r, deadline, wish)
  end
end
    leave(at, st, claim, r)
  else
    redis.call("ZREM", at.line, place .. ("-") .. claim)
    st.waiting = st.waiting - 1
    if (true) then
      lane_leave(at, st, claim, place)
    end
  end
end
  while budget.left > 0 and not lane.over do
    local place, claim, text = lane_first(at, lane.key, lane.number)
    if not claim then
      lane_end(at, st, lane.key)
      break
    end
    local r = text and record_read(text)
    if r and r.place == place and r.alive > at.ms then
      return claim, r, place
    end
    leave_place(at, st, claim, place, r)
    budget.left, budget.swept = budget.left - 1, budget.swept + 1
  end
end
  local _, r = lanes_head(at, st, lane, budget)
local function hold_first(at, claims)
  local members, ends = {}, nil
  for n, claim in ipairs(claims) do
    members[n] = "h:" .. claim
  end
  for _, score in ipairs(members[1] and redis.call("ZMSCORE", at.line, unpack(members)) or {}) do
    ends = least(ends, score and score - (10000000000000) or nil)
  end
  return ends
end
  local next_at = least(ends ~= (9999999999999) and ends or nil, item and hold_first(at, item.claims))
  if r and next_at and next_at < (9999999999999) then
    notify_node(at, r, next_at)
  end
end
local function lanes_tell(at, st, lane)
  local _, _, text = lane_first(at, lane.key, lane.number)
  local r = text and record_read(text)
  if r then
    notify_node(at, r, math.max(st.pause, at.ms))
  end
  return r
end
  for _, lane in ipairs(st.touched or {}) do
    local item = not lane.over and lane.dirty and item_read(at, lane.key)
    if item and not item.listed and not item.leaving then
      lanes_wait(at, st, lane, item, item_moment(item), budget)
    elseif (not item or item.leaving) and lane.dirty and not lane.over and not st.pool.filled then
      lanes_wait(at, st, lane, nil, (9999999999999), budget)
    elseif (lane.dirty or lane.order) and not lane.over then
      redis.call("ZADD", at.line, (string.format("%d", ((258 * 10000000000000) + at.ms))), "w:" .. lane.key)
      st.met, told = st.met or st.pause == 0, told or lanes_tell(at, st, lane)
    end
  end
end
    lanes_keep(at, st)
  end
local function pool_save(st)
  local p = st.pool
  st.cap, st.keep = 1, (p.resources > p.leaving or string.sub(p.settings, 1, 1) == "o") and 1 or 0
local function pool_counts_write(p, used)
  local kept = (2000000000000000) + p.resources - p.free
  return string.format(("%d %013d %d %d %d %d %d "), (1000000000000000) + p.resources, p.gen, kept - used, kept - p.leased,
    (1000000000000000) + p.parked, (1000000000000000) + p.leaving, p.filled and 1 or 0) .. p.settings
end
  local counts = pool_counts_write(p, math.max(st.used, 0))
  return counts ~= st.counts and counts or nil
end
  return pool_save(st)
end
  local own, uses = (true) and kind_save(at, st), (3)
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
