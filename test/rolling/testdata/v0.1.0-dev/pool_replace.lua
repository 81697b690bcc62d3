--[[
pool_replace: begin a Replace, or remove some of the resources that it did not name.
KEYS[1] state (HASH field -> number, c:claim -> record, r:claim -> resource)
KEYS[2] line (ZSET h:, a:, q:, t:claim, e:, x:resource, u:binding -> score, see lib/bands)
KEYS[3] items (HASH i:resource -> item)
KEYS[4] free (HASH n:, p:resource -> next, previous)
KEYS[5] bindings (HASH b:name -> end, resource)
ARGV[1] step: look, begin or prune
ARGV[2] the last Replace that the caller has seen, or for prune its own
ARGV[3] id of the call that begins it, or for prune the cursor (0 to begin)
ARGV[4] linger (ms)    ARGV[5] channel prefix    ARGV[6] name
RETURNS {"seen", generation} | {"begun", generation} | {"removed", cursor, removed} | {"superseded", generation} | {"incompatible", format}
REPLAY the call that began it last is told the same    COST O(log n) each of about 100 resources
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
local function fresh(at, st)
  if st.fmt == 0 and redis.call("ZCARD", at.line) > 0 then
    redis.call("UNLINK", at.line)
  end
end
local function poolfresh(at, st)
  if st.fmt > 0 then
    return
  end
  fresh(at, st)
  for _, key in ipairs(at.more) do
    if redis.call("HLEN", key) > 0 then
      redis.call("UNLINK", key)
    end
  end
  redis.call("HSET", at.items, "v", "1")
  redis.call("HSET", at.free, "n", "", "p", "")
  redis.call("HSET", at.bindings, "v", "1")
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
local step, gen = ARGV[1], tonumber(ARGV[2])
local at, st, _, newer = pool(KEYS, ARGV[4], ARGV[5], ARGV[6])
if newer then
  return { "incompatible", newer }
elseif step == "look" then
  return { "seen", st.pool.gen }
elseif step == "begin" and redis.call("HGET", at.state, "replace") == ARGV[3] then
  return { "begun", st.pool.gen }
elseif st.pool.gen ~= gen then
  return { "superseded", st.pool.gen }
elseif step == "begin" then
  if st.fmt > 0 then
    touch(at, st)
  end
  poolfresh(at, st)
  st.pool.gen = math.max(st.pool.gen + 1, at.ms)
  poolsave(at, st, nil, "replace", ARGV[3])
  return { "begun", st.pool.gen }
end
local page, removed = redis.call("HSCAN", at.items, ARGV[3], "MATCH", "i*", "COUNT", 100), 0
touch(at, st)
for n = 1, #page[2], 2 do
  local key = string.sub(page[2][n], 2)
  local i = item(at, key, page[2][n + 1])
  if i.gen < gen and not i.leaving then
    i.leaving, removed = true, removed + 1
    settle(at, st, key, i)
  end
end
if removed > 0 then
  poolsave(at, st)
end
return { "removed", page[1], removed }

