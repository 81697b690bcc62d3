--[[
pool_resume: another node takes up a detached hold of a resource.
KEYS[1] state (HASH field -> number, c:claim -> record, r:claim -> resource)
KEYS[2] line (ZSET h:, a:, q:, t:claim, e:, x:resource, u:binding -> score, see lib/bands)
KEYS[3] items (HASH i:resource -> item)
KEYS[4] free (HASH n:, p:resource -> next, previous)
KEYS[5] bindings (HASH b:name -> end, resource)
ARGV[1] claim id    ARGV[2] node that detached it    ARGV[3] node that takes it up
ARGV[4] linger (ms)    ARGV[5] channel prefix    ARGV[6] name
RETURNS {"resumed", left_ms, limit_ms, record, resource} | {"attached", left_ms, limit_ms, record, resource}
  | {"not_held", word} | {"taken"} | {"incompatible", format}
REPLAY the new node may ask again; the answer is attached then   COST O(log n)
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
local function lengthen(at, st, r, deadline, mode)
  if mode == "check" then
    return deadline
  end
  local starts = r.phase == "g"
  if starts then
    r.phase = "h"
    r.limit = r.max > 0 and at.ms + r.max or 0
    if endless(r) then
      st.forever = st.forever + 1
    end
  end
  local anew = starts or mode == "renew" or (r.kind == "r" and r.phase ~= "d")
  if mode == "detach" then
    r.phase = "d"
  end
  if not anew then
    return deadline
  end
  local ends = r.lease == 0 and bands().forever or at.ms + r.lease
  if r.limit > 0 then
    ends = math.min(ends, r.limit)
  end
  return ends
end
local function touch(at, st)
  if st.exp > 0 then
    redis.call("PEXPIREAT", at.line, st.exp)
  else
    redis.call("PERSIST", at.line)
  end
end
local function int(x)
  return string.format("%d", x)
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
local function resume(at, st, known, claim, from, to, out)
  local r = known and record(known)
  local deadline = r and tonumber(redis.call("ZSCORE", at.line, "h:" .. claim))
  if not deadline or deadline <= at.ms then
    return "not_held"
  elseif r.node ~= from and (r.node ~= to or r.phase == "d") then
    return "taken"
  elseif r.node ~= from or r.phase ~= "d" then
    return "attached", r, deadline
  end
  touch(at, st)
  if from ~= to then
    wake(out, at.channel .. from, "taken", at.name, claim)
  end
  r.node, r.phase = to, "h"
  return "resumed", r, lengthen(at, st, r, deadline, "beat")
end
local function pack(r)
  return string.format("%d:%s%s %d %s %d %d ", #r.node, r.node, r.phase, r.ticket, r.fence, r.granted, r.limit)
    .. r.tail
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
local claim = ARGV[1]
local at, st, known, newer, resource = pool(KEYS, ARGV[4], ARGV[5], ARGV[6], claim)
local out, forever = {}, bands().forever
if newer then
  return { "incompatible", newer }
end
local word, r, deadline = resume(at, st, known, claim, ARGV[2], ARGV[3], out)
if word == "not_held" then
  return { "not_held", known and string.sub(known, 1, 1) == "!" and string.sub(known, 2) or "" }
elseif word == "taken" then
  return { "taken" }
end
local text = pack(r)
local left = deadline == forever and -1 or deadline - at.ms
local limit = r.limit > 0 and r.limit - at.ms or -1
if word == "attached" then
  return { "attached", left, limit, text, resource or "" }
end
redis.call("ZADD", at.line, deadline, "h:" .. claim)
poolsave(at, st, deadline < forever and deadline or nil, "c:" .. claim, text)
tell(out)
return { "resumed", left, limit, text, resource or "" }

