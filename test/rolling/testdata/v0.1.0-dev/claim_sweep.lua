--[[
claim_sweep: drop what has expired, hand on, and count.
KEYS[1] state (HASH field -> number, c:claim -> record)
KEYS[2] line (ZSET h:, a:, q:, t:claim -> score, see lib/bands)
ARGV[1] node    ARGV[2] linger (ms)    ARGV[3] channel prefix    ARGV[4] name
RETURNS {"swept", dropped, held, holders, waiting, capacity, next_ms, first, more}
  | {"incompatible", format}
REPLAY drops only what has expired    COST O(log n) + at most 100 drops and grants
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
local function int(x)
  return string.format("%d", x)
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
local function tide(at, st, node, next_at, claim, alive)
  if st.waiting <= 0 then
    return -1, 0
  end
  if next_at == nil then
    next_at = soonest(at)
  end
  claim = claim or first(at.line)
  if claim and not alive then
    local score = tonumber(redis.call("ZSCORE", at.line, "a:" .. claim))
    alive = score and score - bands().alive
  end
  if alive then
    next_at = math.min(next_at or alive, alive)
  end
  local mine = claim and string.sub(claim, 1, #node + 1) == node .. "."
  return next_at and math.max(next_at - at.ms, 0) or -1, mine and 1 or 0
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
local function tell(out)
  for _, message in ipairs(out) do
    redis.pcall("PUBLISH", message[1], message[2])
  end
end
local node = ARGV[1]
local at, st, _, newer = open(KEYS[1], KEYS[2], ARGV[2], ARGV[3], ARGV[4])
local out, budget = {}, 100
if newer then
  return { "incompatible", newer }
end
if st.fmt == 0 then
  return { "swept", 0, 0, 0, 0, 0, -1, 0, 0 }
end
local dropped = sweep(at, st, budget)
local stale = st.used > 0 and redis.call("ZCOUNT", at.line, 0, bands().forever) == 0
if stale then
  st.used = 0
end
local spent = dropped + handoff(at, st, budget - dropped, out)
if spent > 0 or stale then
  save(at, st)
end
local holders = redis.call("ZCOUNT", at.line, 0, bands().forever)
local next_ms, mine = tide(at, st, node)
tell(out)
return { "swept", dropped, st.used, holders, st.waiting, st.cap, next_ms, mine, spent >= budget and 1 or 0 }

