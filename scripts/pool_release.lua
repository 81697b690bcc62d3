--[[
pool_release: give back a hold and its resource, or leave the line, and hand on.
KEYS[1] state (HASH v -> values, c:claim -> record, r:claim -> resource, s:resource -> settings)
KEYS[2] line (ZSET place-claim, h:, t:claim, e:, x:, d:resource, u:binding, - -> score, see state/score)
KEYS[3] items (HASH i:resource -> item)
KEYS[4] free (ZSET resource -> its turn)
KEYS[5] bindings (HASH b:name -> end, resource)
ARGV[1] claim id
ARGV[2] node, secret and weight as in its record; "" where more is to be done than to give back
ARGV[3] how far behind the hold's deadline the name may expire (ms)    ARGV[4] the rest, see state/ask
ARGV[5...] x4: rest of the resource (ms, 0 = none), why it rests, fence of the grant that it was asked for,
when the resource leaves the pool (ms, 0 = as before)
RETURNS plain fence
  | {"released", flags, fence, stays} | {"cancelled", flags, fence, stays} | {"expired", flags, fence, stays}
  | {"not_held", word} | {"taken"} | {"incompatible", format}
REPLAY a claim that is gone is not_held    COST O(log n) + at most 100 drops and grants
]]
-- The group is there once, or not. stays is 1 where the resource is still in the pool.
--- @include "state/fetch"
--- @include "fast/pool_release"
local rest, reason, seen, expiry = unpack(ARGV, 5)
local time, kept = redis.call("TIME"), redis.call("HMGET", KEYS[1], "v", "c:" .. ARGV[1], "pool", "r:" .. ARGV[1])
local plain, heir = fast_pool_release(time, kept, KEYS, ARGV[1], ARGV[2], rest or ARGV[3] == "")
if plain then
  return plain
end

--- @include "fast/pool_handoff"
plain = heir and fast_pool_handoff(heir, kept, KEYS, ARGV[1], ARGV[4])
if plain then
  return plain
end

-- What only the other cases need is not even defined before.
--- @include "kind/pool"
--- @include "state/ask"
--- @include "line/release"
local linger, stays, node, channel, name = string.match(ARGV[4], ask_release)
local at, st, known = kind_open(KEYS, linger, channel, name, ARGV[1], time, kept, false)
return release(at, st, known, ARGV[1], node, tonumber(stays),
  rest and { rest = tonumber(rest), reason = reason, fence = seen, expiry = tonumber(expiry) })
