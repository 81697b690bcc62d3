--[[
pool_force_release: end somebody's hold or wait by its id alone, hand on, and tell its node.
KEYS[1] state (HASH v -> values, c:claim -> record, r:claim -> resource, s:resource -> settings)
KEYS[2] line (ZSET place-claim, h:, t:claim, e:, x:, d:resource, u:binding, - -> score, see state/score)
KEYS[3] items (HASH i:resource -> item)
KEYS[4] free (ZSET resource -> its turn)
KEYS[5] bindings (HASH b:name -> end, resource)
ARGV[1] linger (ms)    ARGV[2] channel prefix    ARGV[3] name
ARGV[4] node ("" = any)    ARGV[5] claim id    ARGV[6] tombstone (ms)
ARGV[7] 1 = only if it waits
RETURNS {"released", flags, fence, ended} | {"cancelled", flags, fence, ended} | {"expired", flags, fence, ended}
  | {"not_held", word} | {"incompatible", format}
REPLAY a claim that is gone is not_held    COST O(log n) + at most 100 drops and grants
]]
--- @include "kind/pool"
--- @include "line/force"
local at, st, known = kind_open(KEYS, ARGV[1], ARGV[2], ARGV[3], ARGV[5])
return force_claim(at, st, known, ARGV[5], ARGV[4], tonumber(ARGV[6]), ARGV[7])
