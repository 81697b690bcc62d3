--[[
lock_release: end an entry of a lock, or leave the line; the last entry hands on.
KEYS[1] state (HASH v -> values, c:claim -> record, stem; STRING see state/thin)
KEYS[2] line (ZSET place-claim, h:, t:claim, - -> score, see state/score)
ARGV[1] linger (ms)    ARGV[2] channel prefix    ARGV[3] name    ARGV[4] node
ARGV[5] claim id    ARGV[6] tombstone (ms, 0 = none)
ARGV[7...] x1: claim id of another entry that was lowered for this
RETURNS {"plain", fence}
  | {"released", flags, fence, entries} | {"cancelled", flags, fence, entries} | {"expired", flags, fence, entries}
  | {"not_held", word} | {"taken"} | {"incompatible", format}
REPLAY a claim that is gone is not_held    COST O(log n) + O(entries) + at most 100 drops and grants
]]
--- @include "state/fetch"
--- @include "fast/release"
local time, kept, top, second = fetch(KEYS, ARGV[5], "stem")
local plain, heir = fast_release(time, kept, KEYS, ARGV[1], ARGV[4], ARGV[5], ARGV[6])
if plain then
  return plain
end

--- @include "fast/handoff"
plain = heir and fast_handoff(heir, kept, KEYS, ARGV[2], ARGV[3], ARGV[5], top, second)
if plain then
  return plain
end

-- What only the other cases need is not even defined before.
--- @include "kind/lock"
--- @include "line/release"
local at, st, known = kind_open(KEYS, ARGV[1], ARGV[2], ARGV[3], ARGV[5], time, kept, top)
local lowered = {}
for n = 7, #ARGV do
  lowered[ARGV[n]] = true
end
return release(at, st, known, ARGV[5], ARGV[4], tonumber(ARGV[6]), { lowered = lowered })
