--[[
pool_resume: another node takes up a detached hold of a resource.
KEYS[1] state (HASH v -> values, c:claim -> record, r:claim -> resource, s:resource -> settings)
KEYS[2] line (ZSET place-claim, h:, t:claim, e:, x:, d:resource, u:binding, - -> score, see state/score)
KEYS[3] items (HASH i:resource -> item)
KEYS[4] free (ZSET resource -> its turn)
KEYS[5] bindings (HASH b:name -> end, resource)
ARGV[1] linger (ms)    ARGV[2] channel prefix    ARGV[3] name
ARGV[4] node that takes it up    ARGV[5] claim id    ARGV[6] node that detached it
ARGV[7] mode (beat)
RETURNS {"resumed", left_ms, limit_ms, record, extra} | {"attached", left_ms, limit_ms, record, extra}
  | {"not_held", word} | {"taken"} | {"incompatible", format}
REPLAY the new node may ask again; the answer is attached then    COST O(log n)
]]
--- @include "kind/pool"
--- @include "line/resume"
local at, st, known = kind_open(KEYS, ARGV[1], ARGV[2], ARGV[3], ARGV[5])
return resume(at, st, known, ARGV[5], ARGV[6], ARGV[4], ARGV[7])
