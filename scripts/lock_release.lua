--[[
lock_release: end an entry of a lock, or leave the line; the last entry hands on.
KEYS[1] state (HASH field -> number, c:claim -> record, stem)
KEYS[2] line (ZSET h:, a:, q:, t:claim -> score, see state/band)
ARGV[1] linger (ms)    ARGV[2] channel prefix    ARGV[3] name    ARGV[4] node
ARGV[5] claim id    ARGV[6] tombstone (ms, 0 = none)
ARGV[7...] x1: claim id of another entry that was lowered for this
RETURNS {"released", flags, fence, entries} | {"cancelled", flags, fence, entries} | {"expired", flags, fence, entries}
  | {"not_held", word} | {"taken"} | {"incompatible", format}
REPLAY a claim that is gone is not_held    COST O(log n) + O(entries) + at most 100 drops and grants
]]
--- @include "state/fetch"
--- @include "quick/release"
local time, kept = fetch(KEYS[1], ARGV[5], "stem")
local plain, next_up = quick_release(time, kept, KEYS, ARGV[5], ARGV[4], ARGV[6], ARGV[1])
if plain then
  return plain
end

--- @include "quick/handoff"
plain = next_up and quick_handoff(next_up, KEYS, ARGV[5], ARGV[2], ARGV[3])
if plain then
  return plain
end

-- What only the other cases need is not even defined before.
--- @include "kind/lock"
--- @include "line/release"
local at, st, known = kind_open(KEYS, ARGV[1], ARGV[2], ARGV[3], time, kept)
local lowered = {}
for n = 7, #ARGV do
  lowered[ARGV[n]] = true
end
return release(at, st, known, ARGV[5], ARGV[4], tonumber(ARGV[6]), { lowered = lowered })
