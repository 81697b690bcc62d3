--[[
pool_want: ask the holder of a claim to give it back, and have its node hear at once.
KEYS[1] state (HASH v -> values, c:claim -> record, r:claim -> resource, s:resource -> settings)
KEYS[2] line (ZSET place-claim, h:, t:claim, e:, x:, d:resource, u:binding, - -> score, see state/score)
KEYS[3] items (HASH i:resource -> item)
KEYS[4] free (ZSET resource -> its turn)
KEYS[5] bindings (HASH b:name -> end, resource)
ARGV[1] linger (ms)    ARGV[2] channel prefix    ARGV[3] name
ARGV[4] node ("" = any)    ARGV[5] claim id
RETURNS {"wanted", ago_ms, fence, detached} | {"waits"} | {"expired"} | {"not_held", word} | {"incompatible", format}
REPLAY it has been wanted since the first call    COST O(log n)
]]
--- @include "kind/pool"
--- @include "line/want"
local at, st, known = kind_open(KEYS, ARGV[1], ARGV[2], ARGV[3], ARGV[5])
return want(at, st, known, ARGV[5], ARGV[4])
