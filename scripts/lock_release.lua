--[[
lock_release: end an entry of a lock, or leave the line; the last entry hands on.
KEYS[1] state (HASH v -> values, c:claim -> record, stem; STRING see state/thin)
KEYS[2] line (ZSET place-claim, h:, t:claim, - -> score, see state/score)
ARGV[1] claim id
ARGV[2] node, secret and weight as in its record; "" where more is to be done than to give back
ARGV[3] how far behind the hold's deadline the name may expire (ms)    ARGV[4] the rest, see state/ask
ARGV[5...] x1: claim id of another entry that was lowered for this
RETURNS plain fence
  | {"released", flags, fence, entries} | {"cancelled", flags, fence, entries} | {"expired", flags, fence, entries}
  | {"not_held", word} | {"taken"} | {"incompatible", format}
REPLAY a claim that is gone is not_held    COST O(log n) + O(entries) + at most 100 drops and grants
]]
--- @include "state/fetch"
--- @include "fast/release"
local time, kept, top, second = fetch(KEYS, ARGV[1], "stem")
local plain, still, deadline = fast_release(time, kept, KEYS, ARGV[1], ARGV[2], ARGV[3])
if plain then
  return plain
end

--- @include "fast/handoff"
plain = still and fast_handoff(time, still, deadline, kept, KEYS, ARGV[1], ARGV[4], top, second)
if plain then
  return plain
end

-- What only the other cases need is not even defined before.
--- @include "kind/lock"
--- @include "state/ask"
--- @include "line/release"
local linger, stays, node, channel, name = string.match(ARGV[4], ask_release)
local at, st, known = kind_open(KEYS, linger, channel, name, ARGV[1], time, kept, top)
local lowered = {}
for n = 5, #ARGV do
  lowered[ARGV[n]] = true
end
return release(at, st, known, ARGV[1], node, tonumber(stays), { lowered = lowered })
