--[[
pool_sweep: drop what has expired, end rests that are over, and hand on.
KEYS[1] state (HASH field -> number, c:claim -> record, r:claim -> resource)
KEYS[2] line (ZSET h:, a:, q:, t:claim, e:, x:, d:resource, u:binding -> score, see lib/bands)
KEYS[3] items (HASH i:resource -> item)
KEYS[4] free (HASH n:, p:resource -> next, previous)
KEYS[5] bindings (HASH b:name -> end, resource)
ARGV[1] node    ARGV[2] linger (ms)    ARGV[3] channel prefix    ARGV[4] name
RETURNS {"swept", dropped, next_ms, first, more, ...} | {"incompatible", format}
REPLAY drops only what has expired    COST O(log n) + at most 100 drops and grants
]]
-- Then follow the resources that were found damaged and not told of before, up to 100.
--- @include "lib/pool"
--- @include "lib/bands"
--- @include "lib/touch"
--- @include "lib/reclaim"
--- @include "lib/give"
--- @include "lib/handoff"
--- @include "lib/hasten"
--- @include "lib/tide"
--- @include "lib/poolsave"
--- @include "lib/tell"
local node = ARGV[1]
local at, st, _, newer = pool(KEYS, ARGV[2], ARGV[3], ARGV[4])
local out, budget = {}, 100

if newer then
  return { "incompatible", newer }
end
if st.fmt == 0 then
  return { "swept", 0, -1, 0, 0 }
end
touch(at, st) -- a full server must be able to grant
local used = st.used
local dropped = reclaim(at, st, budget)
local spent = dropped + handoff(at, st, budget - dropped, out, give(at, st))
local band = bands()
local untold = redis.call("ZRANGEBYSCORE", at.line, band.damage, band.damage + 1, "WITHSCORES", "LIMIT", 0, 100)
for n = 1, #untold, 2 do
  redis.call("ZADD", at.line, untold[n + 1] + 2, untold[n])
end
if spent > 0 or untold[1] or st.used ~= used then
  poolsave(at, st)
  hasten(at, st, at.sooner, out)
end
local next_ms, mine = tide(at, st, node)
tell(out)
local reply = { "swept", dropped, next_ms, mine, (spent >= budget or #untold >= 200) and 1 or 0 }
for n = 1, #untold, 2 do
  reply[#reply + 1] = string.sub(untold[n], 3)
end
return reply
