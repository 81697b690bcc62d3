--[[
pool_acquire: take a free resource, or join the line.
KEYS[1] state (HASH v -> values, c:claim -> record, r:claim -> resource)
KEYS[2] line (ZSET place-claim, h:, t:claim, e:, x:, d:resource, u:binding, - -> score, see state/score)
KEYS[3] items (HASH i:resource -> item)
KEYS[4] free (HASH n:, p:resource -> next, previous)
KEYS[5] bindings (HASH b:name -> end, resource)
ARGV[1] linger (ms)    ARGV[2] channel prefix    ARGV[3] name    ARGV[4] node
ARGV[5] claim id    ARGV[6] wait (1) or try (0)    ARGV[7] lane, see line/place
ARGV[8] fixed terms of the record, see state/record
RETURNS {"granted", ticket, fence, left_ms, flags, setting, resource}
  | {"queued", ticket, fence, left_ms, flags, setting, extra, place, ahead, next_ms}
  | {"full", held, waiting, swept, flags, setting} | {"ahead", held, waiting, swept, flags, setting}
  | {"held", held, waiting, swept, flags, setting} | {"resting", held, waiting, swept, flags, setting}
  | {"absent", held, waiting, swept, flags, setting}
  | {"gone"} | {"foreign"} | {"incompatible", format}
REPLAY the same claim gets the same answer    COST O(log n) + at most 100 drops and grants
]]
-- The fields are those of line/reply; the fixed terms end with those of pool/wants.
--- @include "state/fetch"
--- @include "fast/pool_acquire"
local time, kept, top = fetch(KEYS, ARGV[5], "pool", "r:" .. ARGV[5])
local plain = fast_pool_acquire(time, kept, top, KEYS, ARGV[1], ARGV[4], ARGV[5], ARGV[8])
if plain then
  return plain
end

-- What only the other cases need is not even defined before.
--- @include "kind/pool"
--- @include "state/record"
--- @include "line/acquire"
local at, st, known = kind_open(KEYS, ARGV[1], ARGV[2], ARGV[3], ARGV[5], time, kept, top)
return acquire(at, st, known, {
  claim = ARGV[5], waits = ARGV[6] ~= "0", lane = ARGV[7], r = record_new(ARGV[4], ARGV[8]),
})
