--[[
pool_renew: the calls of a node's own claims: heartbeats, confirmations, renewals.
KEYS[1] state (HASH v -> values, c:claim -> record, r:claim -> resource, s:resource -> settings)
KEYS[2] line (ZSET place-claim, h:, t:claim, e:, x:, d:resource, u:binding, - -> score, see state/score)
KEYS[3] items (HASH i:resource -> item)
KEYS[4] free (ZSET resource -> its turn)
KEYS[5] bindings (HASH b:name -> end, resource)
ARGV[1] linger (ms)    ARGV[2] channel prefix    ARGV[3] name    ARGV[4] node
ARGV[5...] x2: claim id, mode (beat, want, renew, detach, "renew <lease, ms>",
"keep <lease, ms>")
RETURNS {"renewed", next_ms, flags, setting, ...} | {"incompatible", format}
REPLAY a lease is counted from now; a fixed one starts once    COST O(log n) a claim + at most 100 drops, grants, asks
]]
-- keep is a beat that names the lease; a lease of 0 is without end.
-- For each claim three fields follow: a word, the milliseconds left, the fence, see
-- line/renew and, for the modes that name a lease, line/renewal; then for each the resource that it holds, "" for none.
--- @include "state/fetch"
--- @include "fast/pool_renew"
local time, kept, top = fetch(KEYS, ARGV[5], "pool", "r:" .. ARGV[5])
local plain = fast_pool_renew(time, kept, top, KEYS, ARGV[1], ARGV[4], ARGV[5], #ARGV == 6 and ARGV[6] or nil)
if plain then
  return plain
end

-- What only the other cases need is not even defined before.
--- @include "kind/pool"
--- @include "line/renew"
local at, st = kind_open(KEYS, ARGV[1], ARGV[2], ARGV[3], nil, time, kept, top)
return renew(at, st, ARGV[4], { unpack(ARGV, 5) })
