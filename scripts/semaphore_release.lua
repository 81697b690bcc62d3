--[[
semaphore_release: give back a hold, or leave the line, and hand on.
KEYS[1] state (HASH v -> values, c:claim -> record; STRING see state/thin)
KEYS[2] line (ZSET place-claim, h:, t:claim, - -> score, see state/score)
ARGV[1] linger (ms)    ARGV[2] channel prefix    ARGV[3] name    ARGV[4] node
ARGV[5] claim id    ARGV[6] tombstone (ms, 0 = none)
RETURNS {"plain", fence} | {"released", flags, fence} | {"cancelled", flags, fence} | {"expired", flags, fence}
  | {"not_held", word} | {"taken"} | {"incompatible", format}
REPLAY a claim that is gone is not_held    COST O(log n) + at most 100 drops and grants
]]
--- @include "state/fetch"
--- @include "fast/release"
local time, kept, top = fetch_fat(KEYS, ARGV[5]) -- a thin name has a script of its own
local plain, heir = fast_release(time, kept, KEYS, ARGV[1], ARGV[4], ARGV[5], ARGV[6])
if plain then
  return plain
end

--- @include "fast/handoff"
plain = heir and fast_handoff(heir, kept, KEYS, ARGV[2], ARGV[3], ARGV[5], top)
if plain then
  return plain
end

-- What only the other cases need is not even defined before.
--- @include "kind/semaphore"
--- @include "line/release"
local at, st, known = kind_open(KEYS, ARGV[1], ARGV[2], ARGV[3], ARGV[5], time, kept, top)
return release(at, st, known, ARGV[5], ARGV[4], tonumber(ARGV[6]))
