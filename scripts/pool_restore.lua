--[[
pool_restore: a node's waiting claims that the server no longer knows stand where they stood.
KEYS[1] state (HASH v -> values, c:claim -> record, r:claim -> resource, s:resource -> settings)
KEYS[2] line (ZSET place-claim, h:, t:claim, e:, x:, d:resource, u:binding, - -> score, see state/score)
KEYS[3] items (HASH i:resource -> item)
KEYS[4] free (ZSET resource -> its turn)
KEYS[5] bindings (HASH b:name -> end, resource)
ARGV[1] linger (ms)    ARGV[2] channel prefix    ARGV[3] name    ARGV[4] node
ARGV[5] capacity, if none is stored: 1
ARGV[6...] x3: claim id, place, record with its ticket
RETURNS {"restored", next_ms, flags, setting, held, waiting, ...} | {"incompatible", format}
REPLAY a claim that is known stays as it is    COST O(log n) a claim + at most 100 drops and grants
]]
-- For each claim one word follows, see line/restore.
--- @include "kind/pool"
--- @include "line/restore"
local at, st = kind_open(KEYS, ARGV[1], ARGV[2], ARGV[3])
return restore(at, st, ARGV[4], tonumber(ARGV[5]), { unpack(ARGV, 6) })
