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
ARGV[5] rest of the resource (ms, 0 = none)    ARGV[6] why it rests
ARGV[7] fence of the grant that it was asked for    ARGV[8] when the resource leaves the pool (ms, 0 = as before)
RETURNS {"released", flags, fence, stays} | {"cancelled", flags, fence, stays} | {"expired", flags, fence, stays}
  | {"not_held", word} | {"taken"} | {"incompatible", format}
REPLAY a claim that is gone is not_held    COST O(log n) + at most 100 drops and grants
]]
-- stays is 1 where the resource is still in the pool.
--- @include "state/fetch"
--- @include "state/ask"
--- @include "fast/pool_release"
local linger, stays, node, channel, name = string.match(ARGV[4], ask_release)
local time, kept, top = fetch(KEYS, ARGV[1], "pool", "r:" .. ARGV[1])
local plain = ARGV[2] ~= "" and ARGV[3] ~= "" and kept[4]
  and fast_pool_release(time, kept, top, KEYS, linger, node, ARGV[1], stays, ARGV[5], ARGV[8])
if plain then
  return plain
end

-- What only the other cases need is not even defined before.
--- @include "kind/pool"
--- @include "line/release"
local at, st, known = kind_open(KEYS, linger, channel, name, ARGV[1], time, kept, top)
return release(at, st, known, ARGV[1], node, tonumber(stays),
  { rest = tonumber(ARGV[5]), reason = ARGV[6], fence = ARGV[7], expiry = tonumber(ARGV[8]) })
