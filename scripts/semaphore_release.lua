--[[
semaphore_release: give back a hold, or leave the line, and hand on.
KEYS[1] state (HASH v -> values, c:claim -> record; STRING see state/thin)
KEYS[2] line (ZSET place-claim, h:, t:claim, - -> score, see state/score)
ARGV[1] claim id
ARGV[2] node, secret and weight as in its record; "" where more is to be done than to give back
ARGV[3] how far behind the hold's deadline the name may expire (ms)    ARGV[4] the rest, see state/ask
RETURNS plain fence | {"released", flags, fence} | {"cancelled", flags, fence} | {"expired", flags, fence}
  | {"not_held", word} | {"taken"} | {"incompatible", format}
REPLAY a claim that is gone is not_held    COST O(log n) + at most 100 drops and grants
]]
--- @include "state/fetch"
--- @include "fast/release"
local time, kept, top = false, redis.pcall("HMGET", KEYS[1], "v", "c:" .. ARGV[1]), false
if kept.err then -- a thin name has a script of its own
  time, kept, top = fetch(KEYS, ARGV[1])
end
local plain, still, deadline = fast_release(time, kept, KEYS, ARGV[1], ARGV[2], ARGV[3])
if plain then
  return plain
end

time = time or redis.call("TIME")
--- @include "fast/handoff"
plain = still and fast_handoff(time, still, deadline, kept, KEYS, ARGV[1], ARGV[4], top)
if plain then
  return plain
end

-- What only the other cases need is not even defined before.
--- @include "kind/semaphore"
--- @include "state/ask"
--- @include "line/release"
local linger, stays, node, channel, name = string.match(ARGV[4], ask_release)
local at, st, known = kind_open(KEYS, linger, channel, name, ARGV[1], time, kept, top)
return release(at, st, known, ARGV[1], node, tonumber(stays))
