--[[
pool_rest: have a resource rest from now on, or from its next return on where it is leased; or end its rest.
KEYS[1] state (HASH field -> number, c:claim -> record, r:claim -> resource)
KEYS[2] line (ZSET h:, a:, q:, t:claim, e:, x:resource, u:binding -> score, see lib/bands)
KEYS[3] items (HASH i:resource -> item)
KEYS[4] free (HASH n:, p:resource -> next, previous)
KEYS[5] bindings (HASH b:name -> end, resource)
ARGV[1] resource    ARGV[2] for how long (ms, 0 = end the rest)    ARGV[3] why
ARGV[4] linger (ms)    ARGV[5] channel prefix    ARGV[6] name
RETURNS {"rested", more} | {"absent"} | {"incompatible", format}
REPLAY a rest is counted from now    COST O(log n) + at most 100 drops and grants
]]
local function fetch(state, claim, ...)
  return redis.call("TIME"),
    redis.call("HMGET", state, "fmt", "counts", "ticket", "fence", "exp", "c:" .. (claim or ""), ...)
end
local function now(t)
  local seconds, micros = tonumber(t[1]), tonumber(t[2])
  return seconds * 1000 + (micros - micros % 1000) / 1000, seconds * 1000000 + micros
end
local function load(at, v)
  local cap, used, waiting, gone, forever, keep
  if v[2] then
    cap, used, waiting, gone, forever, keep = string.match(v[2], "^(%S+) (%S+) (%S+) (%S+) (%S+) (%S+)")
  end
  local st = {
    fmt = tonumber(v[1] or 0),
    cap = tonumber(cap or 0),
    used = tonumber(used or 0),
    waiting = tonumber(waiting or 0),
    gone = tonumber(gone or 0),
    forever = tonumber(forever or 0),
    keep = tonumber(keep or 0),
    ticket = tonumber(v[3] or 0),
    fence = tonumber(v[4] or 0),
    exp = tonumber(v[5] or 0),
  }
  at.cap, at.ticket = st.cap, st.ticket
  return st
end
local function assemble(t, v, state, line, linger, channel, name)
  local ms, us = now(t)
  local at = { state = state, line = line, linger = tonumber(linger), channel = channel, name = name, ms = ms, us = us }
  local st = load(at, v)
  return at, st, v[6], st.fmt > 1 and st.fmt or nil, v[7], v[8]
end
local function open(state, line, linger, channel, name, claim, ...)
  local t, v = fetch(state, claim, ...)
  return assemble(t, v, state, line, linger, channel, name)
end
local function pool(keys, linger, channel, name, claim)
  local at, st, text, newer, counts, resource = open(keys[1], keys[2], linger, channel, name, claim, "pool",
    "r:" .. (claim or ""))
  at.items, at.free, at.bindings = keys[3], keys[4], keys[5]
  at.more = { at.items, at.free, at.bindings }
  local n = {}
  for word in string.gmatch(counts or "0 0 0 0 0 0", "%d+") do
    n[#n + 1] = tonumber(word)
  end
  st.pool = { resources = n[1], free = n[2], leased = n[3], leaving = n[4], gen = n[5], moves = n[6] }
  return at, st, text, newer, resource
end
local band_width = 17592186044416
local all_bands = {
  forever = band_width - 1,
  alive = band_width,
  queue = 2 * band_width,
  queue_end = 258 * band_width - 1,
  tomb = 260 * band_width,
  rest = 262 * band_width,
  expiry = 264 * band_width,
  bind = 266 * band_width,
  width = band_width,
}
local function bands()
  return all_bands
end
local function item(at, key, text)
  text = text or redis.call("HGET", at.items, "i" .. key)
  if not text then
    return nil
  end
  local max, expiry, ends, pend, gen, leaving, count, from = string.match(
    text, "^(%d+) (%d+) (%d+) (%d+) (%d+) (%d) (%d+) ()")
  local i = {
    max = tonumber(max), expiry = tonumber(expiry), ends = tonumber(ends), pend = tonumber(pend),
    gen = tonumber(gen), leaving = leaving == "1", claims = {},
  }
  for n = 1, tonumber(count) do
    i.claims[n], from = string.match(text, "^(%S+) ()", from)
  end
  i.reason = string.sub(text, from)
  i.listed = not i.leaving and i.ends == 0 and #i.claims < i.max
  i.was = { ends = i.ends, expiry = i.expiry, leased = #i.claims > 0, leaving = i.leaving }
  return i
end
local function int(x)
  return string.format("%d", x)
end
local function itemtext(i)
  local w = { i.max, int(i.expiry), int(i.ends), int(i.pend), i.gen, i.leaving and 1 or 0, #i.claims }
  for _, claim in ipairs(i.claims) do
    w[#w + 1] = claim
  end
  w[#w + 1] = i.reason
  return table.concat(w, " ")
end
local function push(at, key)
  local tail = redis.call("HGET", at.free, "p") or ""
  redis.call("HSET", at.free, "n" .. tail, key, "p" .. key, tail, "n" .. key, "", "p", key)
end
local function unlink(at, key)
  local links = redis.call("HMGET", at.free, "n" .. key, "p" .. key)
  if links[1] and links[2] then
    redis.call("HSET", at.free, "p" .. links[1], links[2], "n" .. links[2], links[1])
    redis.call("HDEL", at.free, "n" .. key, "p" .. key)
  end
end
local function settle(at, st, key, i)
  local p, was, band, leased = st.pool, i.was, bands(), #i.claims > 0
  local gone = i.leaving and not leased
  local listed = not i.leaving and i.ends == 0 and #i.claims < i.max
  if i.ends ~= was.ends and i.ends > 0 and not gone then
    redis.call("ZADD", at.line, band.rest + i.ends, "e:" .. key)
  elseif was.ends > 0 and (gone or i.ends == 0) then
    redis.call("ZREM", at.line, "e:" .. key)
  end
  if was.expiry > 0 and (i.leaving or i.expiry == 0) then
    redis.call("ZREM", at.line, "x:" .. key)
  elseif i.expiry > 0 and not i.leaving and (i.expiry ~= was.expiry or was.leaving) then
    redis.call("ZADD", at.line, band.expiry + i.expiry, "x:" .. key)
  end
  if i.listed and not listed then
    unlink(at, key)
    p.free = p.free - 1
  elseif listed and not i.listed then
    push(at, key)
    p.free = p.free + 1
  end
  if gone then
    redis.call("HDEL", at.items, "i" .. key)
    p.resources = p.resources - 1
  else
    redis.call("HSET", at.items, "i" .. key, itemtext(i))
  end
  p.leased = p.leased + (leased and 1 or 0) - (was.leased and 1 or 0)
  p.leaving = p.leaving + (i.leaving and not gone and 1 or 0) - (was.leaving and 1 or 0)
  i.listed, i.was = listed, { ends = i.ends, expiry = i.expiry, leased = leased, leaving = i.leaving }
end
local function touch(at, st)
  if st.exp > 0 then
    redis.call("PEXPIREAT", at.line, st.exp)
  else
    redis.call("PERSIST", at.line)
  end
end
local function record(text)
  local size, at = string.match(text, "^(%d+):()")
  if not size then
    return nil
  end
  local node = string.sub(text, at, at + size - 1)
  local phase, ticket, fence, granted, limit, tail, weight, kind, wait, lease, max = string.match(
    text, "^(%a) (%d+) (%d+) (%d+) (%d+) ((%d+) (%a) (%d+) (%d+) (%d+) .*)$", at + size)
  return {
    node = node, phase = phase, ticket = ticket, fence = fence, granted = granted, limit = tonumber(limit),
    tail = tail, weight = tonumber(weight), kind = kind, wait = tonumber(wait), lease = tonumber(lease),
    max = tonumber(max),
  }
end
local function endless(r)
  return r.lease == 0 and r.max == 0
end
local function counted(r)
  return endless(r) and r.phase ~= "g" and r.phase ~= "w" and 1 or 0
end
local function lowest(at)
  local band = bands()
  local score = tonumber(redis.call("ZRANGE", at.line, "0", "0", "WITHSCORES")[2])
  local held = score ~= nil and score < band.alive
  if not held or score == band.forever then
    score = nil
  end
  return score, held
end
local function sweep(at, st, budget, ended)
  local band, total = bands(), 0
  local function expired(from)
    if total >= budget then
      return {}
    end
    return redis.call("ZRANGEBYSCORE", at.line, int(from), int(from + at.ms), "LIMIT", "0", int(budget - total))
  end
  local function drop(members, fields)
    redis.call("ZREM", at.line, unpack(members))
    redis.call("HDEL", at.state, unpack(fields))
    total = total + #fields
  end
  local holds, next_at, held = {}, nil, nil
  if st.used > 0 then
    next_at, held = lowest(at)
  end
  if next_at and next_at <= at.ms then
    holds, next_at, held = expired(0), nil, nil
  end
  if #holds > 0 then
    local fields, records = {}, {}
    for i, member in ipairs(holds) do
      fields[i] = "c:" .. string.sub(member, 3)
    end
    for i, text in ipairs(redis.call("HMGET", at.state, unpack(fields))) do
      local r = text and record(text)
      st.used = st.used - (r and r.weight or 0)
      st.forever = st.forever - (r and counted(r) or 0)
      records[i] = r or false
    end
    local deadlines = ended and redis.call("ZMSCORE", at.line, unpack(holds))
    drop(holds, fields)
    for i, member in ipairs(ended and holds or {}) do
      ended(string.sub(member, 3), records[i], tonumber(deadlines[i]))
    end
  end
  local dead = st.waiting > 0 and expired(band.alive) or {}
  if #dead > 0 then
    local fields, members = {}, {}
    for i, member in ipairs(dead) do
      local claim = string.sub(member, 3)
      fields[i] = "c:" .. claim
      members[2 * i - 1], members[2 * i] = member, "q:" .. claim
    end
    st.waiting, at.parted = st.waiting - #dead, true
    drop(members, fields)
  end
  local stones = st.gone > 0 and expired(band.tomb) or {}
  if #stones > 0 then
    local fields = {}
    for i, member in ipairs(stones) do
      fields[i] = "c:" .. string.sub(member, 3)
    end
    st.gone = st.gone - #stones
    drop(stones, fields)
  end
  return total, next_at, held
end
local function wants(tail)
  local from = string.match(tail, "^%d+ %a %d+ %d+ %d+ %-?%d+ ()")
  local size, after
  for _ = 1, 4 do
    size, after = string.match(tail, "^(%d+):()", from)
    from = after + size
  end
  local policy, kind, cooldown, bindfor, bind = string.match(
    string.sub(tail, after, from - 1), "^(%a) (%a) (%d+) (%d+) (.*)$")
  return {
    policy = policy, shared = kind == "s", cooldown = tonumber(cooldown), bindfor = tonumber(bindfor), bind = bind,
  }
end
local function giveback(at, st, claim, key, ends, reason)
  redis.call("HDEL", at.state, "r:" .. claim)
  local i = item(at, key)
  if not i then
    return false
  end
  local count = #i.claims
  for n = count, 1, -1 do
    if i.claims[n] == claim then
      table.remove(i.claims, n)
    end
  end
  if #i.claims == count then
    return not i.leaving
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
    i.ends, i.reason = math.min(ends, bands().forever), reason
    at.sooner = math.min(at.sooner or i.ends, i.ends)
  end
  if i.ends == 0 then
    i.reason = ""
  end
  settle(at, st, key, i)
  return not i.leaving
end
local function reclaim(at, st, budget)
  local band = bands()
  local total = sweep(at, st, budget, function(claim, r, deadline)
    local key = redis.call("HGET", at.state, "r:" .. claim)
    local cooldown = key and r and wants(r.tail).cooldown or 0
    if key then
      giveback(at, st, claim, key, cooldown > 0 and deadline + cooldown or 0, "")
    end
  end)
  local function due(from)
    local keys = {}
    if total < budget then
      local members = redis.call("ZRANGEBYSCORE", at.line, from, from + at.ms, "LIMIT", 0, budget - total)
      if members[1] then
        redis.call("ZREM", at.line, unpack(members))
      end
      for n, member in ipairs(members) do
        keys[n] = string.sub(member, 3)
      end
      total = total + #members
    end
    return keys
  end
  for _, key in ipairs(due(band.rest)) do
    local i = item(at, key)
    if i then
      i.ends, i.reason = 0, i.pend > 0 and i.reason or ""
      settle(at, st, key, i)
    end
  end
  for _, key in ipairs(due(band.expiry)) do
    local i = item(at, key)
    if i then
      i.leaving = true
      settle(at, st, key, i)
    end
  end
  for _, name in ipairs(due(band.bind)) do
    redis.call("HDEL", at.bindings, "b" .. name)
  end
  return total
end
local function bound(at, name)
  local text = redis.call("HGET", at.bindings, "b" .. name)
  local ends, key = string.match(text or "", "^(%d+) (.*)$")
  if ends and tonumber(ends) > at.ms then
    return key, tonumber(ends)
  end
  return nil
end
local function pick(at, st, w, budget)
  local drops = 0
  local function fits(key)
    local i = key and key ~= w.other and item(at, key)
    if i and i.listed and i.expiry > 0 and i.expiry <= at.ms then
      i.leaving, drops = true, drops + 1
      redis.call("ZREM", at.line, "x:" .. key)
      settle(at, st, key, i)
    end
    return i and i.listed and not (w.only and i.was.leased) and i or nil
  end
  local function step(key)
    local to = redis.call("HGET", at.free, "n" .. key)
    return (not to or to == "") and redis.call("HGET", at.free, "p" .. key) or to
  end
  local function choose()
    local key = redis.call("HGET", at.free, w.policy == "m" and "p" or "n")
    for _ = 1, w.policy == "r" and 8 or 0 do
      local drawn = string.sub(redis.call("HRANDFIELD", at.free), 2)
      if drawn ~= "" and drawn ~= w.other then
        key = drawn
        break
      end
    end
    if key == w.other and key ~= "" then
      key = step(key)
    end
    return key ~= "" and key or nil
  end
  local wanted = w.only or w.bind ~= "" and bound(at, w.bind)
  local i = st.pool.free > 0 and drops < budget and fits(wanted)
  if i then
    return wanted, i, drops
  end
  while not w.only and st.pool.free > 0 and drops < budget do
    local before, key = drops, choose()
    i = fits(key)
    if i then
      return key, i, drops
    elseif drops == before then
      break
    end
  end
  return nil, nil, drops
end
local function bind(at, name, key, lasts)
  local band = bands()
  local ends = lasts == 0 and band.forever or math.min(at.ms + lasts, band.forever)
  redis.call("HSET", at.bindings, "b" .. name, int(ends) .. " " .. key)
  if ends < band.forever then
    redis.call("ZADD", at.line, band.bind + ends, "u:" .. name)
  else
    redis.call("ZREM", at.line, "u:" .. name)
  end
  local ended = redis.call("ZRANGEBYSCORE", at.line, band.bind, band.bind + at.ms, "LIMIT", 0, 2)
  for _, member in ipairs(ended) do
    redis.call("ZREM", at.line, member)
    redis.call("HDEL", at.bindings, "b" .. string.sub(member, 3))
  end
end
local function take(at, st, claim, w, key, i)
  if not w.shared then
    i.claims[#i.claims + 1] = claim
    settle(at, st, key, i)
  end
  if i.listed and st.pool.free > 1 then
    unlink(at, key)
    push(at, key)
  end
  if w.bind ~= "" then
    bind(at, w.bind, key, w.bindfor)
  end
end
local function give(at, st)
  return function(claim, r, budget)
    local w = wants(r.tail)
    local key, i, drops = pick(at, st, w, budget)
    if key then
      take(at, st, claim, w, key, i)
      redis.call("HSET", at.state, "r:" .. claim, key)
    end
    return key, drops
  end
end
local function pack(r)
  return string.format("%d:%s%s %d %s %d %d ", #r.node, r.node, r.phase, r.ticket, r.fence, r.granted, r.limit)
    .. r.tail
end
local function first(line, many)
  local band = bands()
  local head = redis.call("ZRANGEBYSCORE", line, int(band.queue), int(band.queue_end), "WITHSCORES",
    "LIMIT", "0", many or "1")
  if not head[1] then
    return nil
  end
  return string.sub(head[1], 3), tonumber(head[2]) - band.queue, head[3] and string.sub(head[3], 3)
end
local function leave(at, st, claim, r, held, word, stays)
  if held then
    if redis.call("ZREM", at.line, "h:" .. claim) > 0 then
      st.used = st.used - r.weight
    end
  else
    at.parted = at.parted or first(at.line) == claim
    if redis.call("ZREM", at.line, "a:" .. claim, "q:" .. claim) > 0 then
      st.waiting = st.waiting - 1
    end
  end
  st.forever = st.forever - (r and counted(r) or 0)
  if word then
    redis.call("HSET", at.state, "c:" .. claim, "!" .. word)
    redis.call("ZADD", at.line, bands().tomb + at.ms + stays, "t:" .. claim)
    st.gone = st.gone + 1
  else
    redis.call("HDEL", at.state, "c:" .. claim)
  end
end
local function wake(out, channel, ...)
  local parts = {}
  for i = 1, select("#", ...) do
    local field = select(i, ...)
    field = type(field) == "number" and int(field) or field
    parts[i] = string.format("%d:", #field) .. field
  end
  out[#out + 1] = { channel, table.concat(parts) }
end
local function soonest(at)
  local band, score = bands(), lowest(at)
  if at.free then
    local first_rest = redis.call("ZRANGEBYSCORE", at.line, band.rest, band.rest + band.forever - 1,
      "WITHSCORES", "LIMIT", 0, 1)
    local ends = tonumber(first_rest[2])
    if ends and (not score or ends - band.rest < score) then
      score = ends - band.rest
    end
  end
  return score
end
local function hasten(at, st, deadline, out, claim, r, alive, next_at)
  next_at = st.waiting > 0 and deadline and (next_at or soonest(at))
  if not next_at or deadline ~= true and deadline ~= next_at then
    return
  end
  if not claim then
    claim = first(at.line)
    local text = claim and redis.call("HGET", at.state, "c:" .. claim)
    r = text and record(text)
    if not r then
      return
    end
    alive = (tonumber(redis.call("ZSCORE", at.line, "a:" .. claim)) or 0) - bands().alive
  end
  if next_at < alive - r.wait / 2 then
    wake(out, at.channel .. r.node, "next", at.name, math.max(next_at - at.ms, 0))
  end
end
local function handoff(at, st, budget, out, deal)
  local band, spent = bands(), 0
  while st.waiting > 0 and spent < budget do
    if st.used >= st.cap and st.cap == at.cap and not deal then
      hasten(at, st, at.parted, out)
      break
    end
    local claim = first(at.line)
    if not claim then
      st.waiting = 0
      break
    end
    local text = redis.call("HGET", at.state, "c:" .. claim)
    local r = text and record(text)
    local alive = (tonumber(redis.call("ZSCORE", at.line, "a:" .. claim)) or 0) - band.alive
    if not r or alive <= at.ms then
      leave(at, st, claim, r, false)
    elseif r.weight > st.cap then
      leave(at, st, claim, r, false)
      wake(out, at.channel .. r.node, "too_heavy", at.name, claim, st.cap)
    elseif not deal and r.weight > st.cap - st.used then
      hasten(at, st, at.parted, out, claim, r, alive)
      break
    else
      local what, drops
      if deal then
        what, drops = deal(claim, r, budget - spent)
        spent = spent + drops
        if not what then
          hasten(at, st, at.parted, out, claim, r, alive)
          break
        end
      end
      st.fence = math.max(st.fence + 1, at.us)
      st.used = st.used + r.weight
      st.waiting = st.waiting - 1
      r.phase, r.fence, r.granted = "g", int(st.fence), at.ms
      redis.call("ZREM", at.line, "q:" .. claim)
      redis.call("ZADD", at.line, int(alive), "h:" .. claim)
      redis.call("ZREM", at.line, "a:" .. claim)
      redis.call("HSET", at.state, "c:" .. claim, pack(r))
      wake(out, at.channel .. r.node, "granted", at.name, claim, st.fence, alive - at.ms, what or "")
      at.parted = true
    end
    spent = spent + 1
  end
  return spent
end
local function expiry(at, st, furthest)
  if st.forever > 0 or st.keep > 0 then
    return 0
  end
  local wanted = math.ceil(((furthest or at.ms) + at.linger) / 1000) * 1000
  local idle = st.used <= 0 and st.waiting <= 0 and st.exp > at.ms + 2 * at.linger
  if st.exp == 0 or idle then
    local band = bands()
    for _, from in ipairs({ 0, band.alive, band.tomb }) do
      local last = st.fmt > 0 and redis.call("ZREVRANGEBYSCORE", at.line, from + band.width - 2, from,
        "WITHSCORES", "LIMIT", 0, 1)
      if last and last[2] then
        wanted = math.max(wanted, math.ceil((tonumber(last[2]) - from + at.linger) / 1000) * 1000)
      end
    end
    return wanted
  end
  return math.max(st.exp, wanted)
end
local function save(at, st, furthest, ...)
  local exp = expiry(at, st, furthest)
  local counts = string.format("%d %d %d %d %d %d", st.cap, st.used, st.waiting, st.gone, st.forever, st.keep)
  local moved, fields = exp ~= st.exp or st.fmt == 0, { "counts", counts, "fence", int(st.fence), ... }
  local function also(field, value)
    fields[#fields + 1], fields[#fields + 2] = field, value
  end
  if st.ticket ~= at.ticket then
    also("ticket", int(st.ticket))
  end
  if moved then
    st.exp = exp
    also("fmt", "1")
    also("exp", int(exp))
  end
  redis.call("HSET", at.state, unpack(fields))
  if exp == 0 then
    if moved then
      redis.call("PERSIST", at.line)
      redis.call("PERSIST", at.state)
      for _, key in ipairs(at.more or {}) do
        redis.call("PERSIST", key)
      end
    end
    return
  end
  if moved then
    redis.call("PEXPIREAT", at.state, int(exp))
    for _, key in ipairs(at.more or {}) do
      redis.call("PEXPIREAT", key, int(exp))
    end
  end
  if moved or furthest and not at.lasting then
    redis.call("PEXPIREAT", at.line, int(exp))
  end
end
local function poolsave(at, st, furthest, ...)
  local p = st.pool
  st.cap, st.keep = 1, p.resources > p.leaving and 1 or 0
  local counts = string.format("%d %d %d %d %d %d", p.resources, p.free, p.leased, p.leaving, p.gen, p.moves + 1)
  save(at, st, furthest, "pool", counts, ...)
end
local function tell(out)
  for _, message in ipairs(out) do
    redis.pcall("PUBLISH", message[1], message[2])
  end
end
local key, lasts, forever = ARGV[1], tonumber(ARGV[2]), bands().forever
local at, st, _, newer = pool(KEYS, ARGV[4], ARGV[5], ARGV[6])
local out, budget = {}, 100
if newer then
  return { "incompatible", newer }
end
local spent = 0
if st.fmt > 0 then
  touch(at, st)
  spent = reclaim(at, st, budget)
end
local i = st.fmt > 0 and item(at, key)
if not i or i.leaving or i.expiry > 0 and i.expiry <= at.ms then
  if spent > 0 then
    handoff(at, st, budget - spent, out, give(at, st))
    poolsave(at, st)
    hasten(at, st, at.sooner, out)
    tell(out)
  end
  return { "absent" }
end
i.pend = 0
if lasts == 0 then
  i.ends, i.reason = 0, ""
elseif i.was.leased then
  i.pend, i.reason = lasts, ARGV[3]
else
  i.ends, i.reason = math.min(at.ms + lasts, forever), ARGV[3]
end
settle(at, st, key, i)
spent = spent + handoff(at, st, budget - spent, out, give(at, st))
poolsave(at, st)
hasten(at, st, i.ends > 0 and math.min(at.sooner or i.ends, i.ends) or at.sooner, out)
tell(out)
return { "rested", spent >= budget and 1 or 0 }

