--[[
semaphore_release: give back a hold, or leave the line, and hand on.
KEYS[1] state (HASH field -> number, c:claim -> record)
KEYS[2] line (ZSET h:, a:, q:, t:claim -> score, see lib/bands)
ARGV[1] claim id    ARGV[2] node    ARGV[3] tombstone (ms, 0 = none)
ARGV[4] linger (ms)    ARGV[5] channel prefix    ARGV[6] name
RETURNS {"released", more} | {"cancelled", more} | {"expired", more} | {"not_held", word}
  | {"taken"} | {"incompatible", format}
REPLAY a claim that is gone is not_held    COST O(log n) + at most 100 drops and grants
]]
local function fetch(state, claim, ...)
  return redis.call("TIME"),
    redis.call("HMGET", state, "fmt", "counts", "ticket", "fence", "exp", "c:" .. (claim or ""), ...)
end
local function plainrelease(t, v, state, line, claim, node, stays, linger)
  local cap, used, waiting = string.match(v[2] or "", "^(%d+) (%d+) (%d+) 0 0 0$")
  local mine = #node .. ":" .. node
  if not cap or v[1] ~= "1" or not v[6] or v[7] or stays ~= "0" or string.sub(v[6], 1, #mine) ~= mine then
    return nil
  end
  local weight = string.match(v[6], "^[gh] %d+ %d+ %d+ %d+ (%d+)", #mine + 1)
  if not weight then
    return nil
  end
  local left, exp, after = used - weight, tonumber(v[5]), tonumber(linger)
  local us = t[1] * 1000000 + t[2]
  local ms = (us - us % 1000) / 1000
  if left < 0 or not exp or ms + after > exp or waiting == "0" and left == 0 and exp > ms + 2 * after then
    return nil
  end
  local deadline = redis.call("ZSCORE", line, "h:" .. claim)
  if not deadline then
    return nil
  end
  local status = deadline - ms > 0 and "released" or "expired"
  if waiting ~= "0" then
    return nil, { status = status, cap = cap, left = left, waiting = waiting - 1, us = us, ms = ms, fence = v[4] }
  end
  redis.call("ZREM", line, "h:" .. claim)
  redis.call("HDEL", state, "c:" .. claim)
  redis.call("HSET", state, "counts", cap .. " " .. left .. " 0 0 0 0")
  return status
end
local time, kept = fetch(KEYS[1], ARGV[1])
local status, plain = plainrelease(time, kept, KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3], ARGV[4])
if status then
  return { status, 0 }
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
local function first(line, many)
  local band = bands()
  local head = redis.call("ZRANGEBYSCORE", line, int(band.queue), int(band.queue_end), "WITHSCORES",
    "LIMIT", "0", many or "1")
  if not head[1] then
    return nil
  end
  return string.sub(head[1], 3), tonumber(head[2]) - band.queue, head[3] and string.sub(head[3], 3)
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
local function wake(out, channel, ...)
  local parts = {}
  for i = 1, select("#", ...) do
    local field = select(i, ...)
    field = type(field) == "number" and int(field) or field
    parts[i] = string.format("%d:", #field) .. field
  end
  out[#out + 1] = { channel, table.concat(parts) }
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
local function tell(out)
  for _, message in ipairs(out) do
    redis.pcall("PUBLISH", message[1], message[2])
  end
end
local function plainhandoff(p, state, line, claim, channel, name)
  local fence, heir, _, second = int(p.us), first(line, "2")
  if not heir then
    return nil
  end
  local texts = redis.call("HMGET", state, "c:" .. heir, "c:" .. (second or ""))
  local scores = redis.call("ZMSCORE", line, "a:" .. heir, "a:" .. (second or ""))
  local text, alive = texts[1], scores[1]
  local size, from = string.match(text or "", "^(%d+):()")
  if not alive or not size or not p.fence or #p.fence ~= #fence or p.fence >= fence then
    return nil
  end
  local ticket, limit, tail, takes = string.match(text, "^w (%d+) %d+ %d+ (%d+) ((%d+) .*)$", from + size)
  local lives = alive - bands().alive
  if not ticket or lives <= p.ms or p.left + takes ~= p.cap + 0 then
    return nil
  end
  local head = string.sub(text, 1, from + size - 1)
  redis.call("ZREM", line, "h:" .. claim)
  redis.call("HDEL", state, "c:" .. claim)
  redis.call("ZADD", line, int(lives), "h:" .. heir)
  redis.call("ZREM", line, "a:" .. heir, "q:" .. heir)
  redis.call("HSET", state, "counts", p.cap .. " " .. p.cap .. " " .. p.waiting .. " 0 0 0", "fence", fence,
    "c:" .. heir, head .. "g " .. ticket .. " " .. fence .. " " .. int(p.ms) .. " " .. limit .. " " .. tail)
  local out = {}
  wake(out, channel .. string.sub(head, from), "granted", name, heir, p.us, lives - p.ms, "")
  local r = texts[2] and record(texts[2])
  if r then
    hasten({ state = state, line = line, ms = p.ms, channel = channel, name = name }, p, true, out,
      second, r, (tonumber(scores[2]) or 0) - bands().alive, p.left == 0 and lives or nil)
  end
  tell(out)
  return p.status
end
status = plain and plainhandoff(plain, KEYS[1], KEYS[2], ARGV[1], ARGV[5], ARGV[6])
if status then
  return { status, 0 }
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
local function endless(r)
  return r.lease == 0 and r.max == 0
end
local function counted(r)
  return endless(r) and r.phase ~= "g" and r.phase ~= "w" and 1 or 0
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
local function fresh(at, st)
  if st.fmt == 0 and redis.call("ZCARD", at.line) > 0 then
    redis.call("UNLINK", at.line)
  end
end
local function pack(r)
  return string.format("%d:%s%s %d %s %d %d ", #r.node, r.node, r.phase, r.ticket, r.fence, r.granted, r.limit)
    .. r.tail
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
local claim, node, stays = ARGV[1], ARGV[2], tonumber(ARGV[3])
local at, st, known, newer = assemble(time, kept, KEYS[1], KEYS[2], ARGV[4], ARGV[5], ARGV[6])
local out, budget = {}, 100
if newer then
  return { "incompatible", newer }
end
local r = known and record(known)
if not r then
  if not known and stays > 0 then
    fresh(at, st)
    redis.call("ZREM", at.line, "t:" .. claim)
    redis.call("ZADD", at.line, bands().tomb + at.ms + stays, "t:" .. claim)
    st.gone = st.gone + 1
    save(at, st, at.ms + stays, "c:" .. claim, "!gone")
  end
  return { "not_held", known and string.sub(known, 2) or "" }
end
if r.node ~= node then
  return { "taken" }
end
local deadline = tonumber(redis.call("ZSCORE", at.line, "h:" .. claim))
leave(at, st, claim, r, deadline ~= nil, stays > 0 and "gone" or nil, stays)
local spent = handoff(at, st, budget, out)
save(at, st, stays > 0 and at.ms + stays)
tell(out)
local word = "released"
if not deadline then
  word = "cancelled"
elseif deadline <= at.ms then
  word = "expired"
end
return { word, spent >= budget and 1 or 0 }

