--[[
semaphore_acquire: take weight permits, or join the line.
KEYS[1] state (HASH field -> number, c:claim -> record)
KEYS[2] line (ZSET h:, a:, q:, t:claim -> score, see lib/bands)
ARGV[1] claim id    ARGV[2] node    ARGV[3] tail of the record, see lib/record
ARGV[4] weight    ARGV[5] priority    ARGV[6] wait lease (ms)
ARGV[7] lease (ms, 0 = forever)    ARGV[8] maximum hold (ms, 0 = none)
ARGV[9] capacity    ARGV[10] policy (stored, strict, override)    ARGV[11] wait (1) or try (0)
ARGV[12] linger (ms)    ARGV[13] channel prefix    ARGV[14] name
RETURNS {"granted", ticket, fence, left_ms, confirmed, capacity, more}
  | {"queued", ticket, place, left_ms, ahead, next_ms, first, capacity, more}
  | {"full", capacity, held, waiting, swept, more} | {"ahead", capacity, held, waiting, swept, more}
  | {"too_heavy", capacity, held, waiting} | {"differs", capacity, held, waiting}
  | {"gone"} | {"foreign"} | {"incompatible", format}
REPLAY the same claim gets the same answer    COST O(log n) + at most 100 drops and grants
]]
local function fetch(state, claim, ...)
  return redis.call("TIME"),
    redis.call("HMGET", state, "fmt", "counts", "ticket", "fence", "exp", "c:" .. (claim or ""), ...)
end
local function plaingrant(t, v, state, line, claim, node, tail, weight, capacity, wait, lease, max, linger)
  local cap, used = string.match(v[2] or "", "^(%d+) (%d+) 0 0 0 0$")
  if cap ~= capacity or v[1] ~= "1" or v[6] or max ~= "0" or lease == "0" then
    return nil
  end
  local length, exp, after = tonumber(lease), tonumber(v[5]), used + weight
  local us = t[1] * 1000000 + t[2]
  local ms, fence = (us - us % 1000) / 1000, string.format("%d", us)
  local ticket = string.sub(fence, 1, -4)
  if after > cap + 0 or length > wait + 0 or not exp or ms + length + linger > exp
    or not v[4] or #v[4] ~= #fence or v[4] >= fence
    or v[3] and (#v[3] > #ticket or #v[3] == #ticket and v[3] >= ticket) then
    return nil
  end
  redis.call("ZADD", line, string.format("%d", ms + length), "h:" .. claim)
  redis.call("HSET", state, "counts", cap .. " " .. after .. " 0 0 0 0", "fence", fence,
    "c:" .. claim, #node .. ":" .. node .. "h " .. ticket .. " " .. fence .. " " .. ticket .. " 0 " .. tail)
  redis.call("PEXPIREAT", line, v[5])
  return ms, us, length
end
local time, kept = fetch(KEYS[1], ARGV[1])
do
  local ticket, fence, left = plaingrant(time, kept, KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[9],
    ARGV[6], ARGV[7], ARGV[8], ARGV[12])
  if ticket then
    return { "granted", ticket, fence, left, 1, tonumber(ARGV[9]), 0 }
  end
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
local function int(x)
  return string.format("%d", x)
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
local function pack(r)
  return string.format("%d:%s%s %d %s %d %d ", #r.node, r.node, r.phase, r.ticket, r.fence, r.granted, r.limit)
    .. r.tail
end
local function place(priority, ticket)
  return (127 - tonumber(priority)) * 17592186044416 + ticket
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
local function begin(at, r)
  if r.lease == 0 or r.lease > r.wait then
    r.phase = "g"
    return at.ms + r.wait
  end
  r.phase = "h"
  if r.max == 0 then
    return at.ms + r.lease
  end
  r.limit = at.ms + r.max
  return math.min(at.ms + r.lease, r.limit)
end
local function grant(at, st, claim, r)
  st.fence = math.max(st.fence + 1, at.us)
  st.used = st.used + r.weight
  r.fence, r.granted = int(st.fence), at.ms
  local deadline = begin(at, r)
  redis.call("ZADD", at.line, int(deadline), "h:" .. claim)
  return deadline
end
local function fresh(at, st)
  if st.fmt == 0 and redis.call("ZCARD", at.line) > 0 then
    redis.call("UNLINK", at.line)
  end
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
local claim, node, capacity, policy, may_wait = ARGV[1], ARGV[2], tonumber(ARGV[9]), ARGV[10], ARGV[11] == "1"
local at, st, known, newer = assemble(time, kept, KEYS[1], KEYS[2], ARGV[12], ARGV[13], ARGV[14])
local out, budget = {}, 100
if newer then
  return { "incompatible", newer }
end
if known and string.sub(known, 1, 1) == "!" then
  return { "gone" }
end
local r = {
  node = node, phase = "w", fence = "0", granted = 0, limit = 0, tail = ARGV[3], weight = tonumber(ARGV[4]),
  wait = tonumber(ARGV[6]), lease = tonumber(ARGV[7]), max = tonumber(ARGV[8]),
}
local function queued(ticket, standing, alive, more, ...)
  local band = bands()
  local next_ms, mine = tide(at, st, node, ...)
  local ahead = redis.call("ZCOUNT", at.line, band.queue, "(" .. int(band.queue + standing))
  return { "queued", ticket, standing, alive - at.ms, ahead, next_ms, mine, st.cap, more }
end
local was, held, alive
if known then
  was = record(known)
  if was.node ~= node then
    return { "foreign" }
  end
  local band = bands()
  local scores = redis.call("ZMSCORE", at.line, "h:" .. claim, "a:" .. claim, "q:" .. claim)
  held, alive = tonumber(scores[1]), tonumber(scores[2])
  if held and held > at.ms then
    return { "granted", tonumber(was.ticket), tonumber(was.fence), held - at.ms, was.phase == "g" and 0 or 1,
      st.cap, 0 }
  elseif alive and alive - band.alive > at.ms then
    return queued(tonumber(was.ticket), tonumber(scores[3]) - band.queue, alive - band.alive, 0)
  end
end
if st.cap == 0 then
  st.cap = capacity
elseif st.cap ~= capacity and policy == "strict" then
  return { "differs", st.cap, st.used, st.waiting }
elseif policy == "override" then
  st.cap = capacity
end
if r.weight > st.cap then
  return { "too_heavy", st.cap, st.used, st.waiting }
end
local swept, spent, next_at = 0, 0, nil
if was then
  leave(at, st, claim, was, held ~= nil)
  spent = 1
end
if st.waiting > 0 or st.used + r.weight > st.cap then
  local any
  swept, next_at, any = sweep(at, st, budget)
  if st.used > 0 and any == nil then
    next_at, any = lowest(at)
  end
  if st.used > 0 and not any then
    st.used = 0
  end
  spent = spent + swept + handoff(at, st, budget - swept, out)
end
local more = spent >= budget and 1 or 0
local ticket = alive and tonumber(was.ticket) or math.max(st.ticket + 1, at.ms)
local standing = place(ARGV[5], ticket)
local head, head_place = nil, nil
if st.waiting > 0 then
  head, head_place = first(at.line)
end
local next_in_line = not head or standing < head_place
local fits = st.used + r.weight <= st.cap
if not (next_in_line and fits) and not may_wait then
  if spent > 0 or st.cap ~= at.cap then
    save(at, st)
  end
  tell(out)
  return { fits and "ahead" or "full", st.cap, st.used, st.waiting, swept, more }
end
fresh(at, st)
r.ticket = ticket
if not (next_in_line and fits) then
  redis.call("ZADD", at.line, int(bands().alive + at.ms + r.wait), "a:" .. claim,
    int(bands().queue + standing), "q:" .. claim)
  st.waiting, st.ticket = st.waiting + 1, math.max(st.ticket, ticket)
  at.lasting = head ~= nil or st.used > 0
  save(at, st, at.ms + r.wait, "c:" .. claim, pack(r))
  tell(out)
  if spent == 0 then
    next_at = next_at or false
  else
    next_at = nil
  end
  if next_in_line then
    return queued(ticket, standing, at.ms + r.wait, more, next_at, claim, at.ms + r.wait)
  end
  local ahead = standing > head_place and head ~= claim and head or nil
  return queued(ticket, standing, at.ms + r.wait, more, next_at, ahead)
end
local deadline = grant(at, st, claim, r)
save(at, st, deadline, "c:" .. claim, pack(r))
hasten(at, st, deadline, out)
tell(out)
return { "granted", ticket, st.fence, deadline - at.ms, r.phase == "g" and 0 or 1, st.cap, more }

