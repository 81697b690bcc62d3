--[[
pool_expire: have a resource leave the pool after a while.
KEYS[1] state (HASH v -> values, c:claim -> record, r:claim -> resource)
KEYS[2] line (ZSET place-claim, h:, t:claim, e:, x:, d:resource, u:binding, - -> score, see state/score)
KEYS[3] items (HASH i:resource -> item)
KEYS[4] free (HASH n:, p:resource -> next, previous)
KEYS[5] bindings (HASH b:name -> end, resource)
ARGV[1] linger (ms)    ARGV[2] channel prefix    ARGV[3] name
ARGV[4] resource    ARGV[5] after how long (ms)
RETURNS {"expires"} | {"absent"} | {"incompatible", format}
REPLAY an expiry is counted from now    COST O(log n)
]]
--- @include "kind/pool"
--- @include "state/score"
--- @include "state/save"
--- @include "pool/item"
--- @include "pool/settle"
local key = ARGV[4]
local at, st = kind_open(KEYS, ARGV[1], ARGV[2], ARGV[3])

if at.newer then
  return { "incompatible", at.newer }
end
local i = st.form and item_read(at, key)
if not i or i.leaving or i.expiry > 0 and i.expiry <= at.ms then
  return { "absent" }
end
i.expiry = math.min(at.ms + ARGV[5], score_forever - 1)
settle(at, st, key, i)
save(at, st)
return { "expires" }
