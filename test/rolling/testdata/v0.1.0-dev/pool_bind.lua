--[[
pool_bind: bind a name to a resource, or end a binding.
KEYS[1] state (HASH field -> number, c:claim -> record, r:claim -> resource)
KEYS[2] line (ZSET h:, a:, q:, t:claim, e:, x:resource, u:binding -> score, see lib/bands)
KEYS[3] items (HASH i:resource -> item)
KEYS[4] free (HASH n:, p:resource -> next, previous)
KEYS[5] bindings (HASH b:name -> end, resource)
ARGV[1] name of the binding    ARGV[2] resource ("" = end it)    ARGV[3] for how long (ms, 0 = forever)
ARGV[4] linger (ms)    ARGV[5] channel prefix    ARGV[6] name
RETURNS {"bound"} | {"unbound", ended} | {"absent"} | {"incompatible", format}
REPLAY a binding is counted from now    COST O(log n)
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
local bind_name, key = ARGV[1], ARGV[2]
local at, st, _, newer = pool(KEYS, ARGV[4], ARGV[5], ARGV[6])
if newer then
  return { "incompatible", newer }
elseif key == "" then
  local ended = redis.call("HDEL", at.bindings, "b" .. bind_name)
  redis.call("ZREM", at.line, "u:" .. bind_name)
  return { "unbound", ended }
end
local i = st.fmt > 0 and item(at, key)
if not i or i.leaving or i.expiry > 0 and i.expiry <= at.ms then
  return { "absent" }
end
bind(at, bind_name, key, tonumber(ARGV[3]))
poolsave(at, st)
return { "bound" }

