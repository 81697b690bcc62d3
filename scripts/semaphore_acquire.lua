--[[
semaphore_acquire: take weight permits, or join the line.
KEYS[1] state (HASH v -> values, c:claim -> record; STRING see state/thin)
KEYS[2] line (ZSET place-claim, h:, t:claim, - -> score, see state/score)
ARGV[1] claim id    ARGV[2] node and fixed terms, as the record ends
ARGV[3] lease of a plain claim (ms, else "")    ARGV[4] linger (ms)
ARGV[5] waiting to pause of the values, while nobody waits    ARGV[6] the rest, see state/ask
RETURNS plain fence | {"granted", ticket, fence, left_ms, flags, setting}
  | {"queued", ticket, fence, left_ms, flags, setting, extra, place, ahead, next_ms}
  | {"full", held, waiting, swept, flags, setting} | {"ahead", held, waiting, swept, flags, setting}
  | {"too_heavy", held, waiting, swept, flags, setting} | {"differs", held, waiting, swept, flags, setting}
  | {"paused", held, waiting, swept, flags, setting, extra, left_ms, since, reason}
  | {"gone"} | {"foreign"} | {"incompatible", format}
REPLAY the same claim gets the same answer    COST O(log n) + at most 100 drops and grants
]]
-- A plain claim has weight 1, no maximum hold, and a lease no longer than its wait lease. The fields
-- are those of line/reply.
--- @include "state/fetch"
--- @include "state/values"
--- @include "fast/acquire"
local time, kept, top = redis.call("TIME"), false, false
if ARGV[5] ~= values_lone then -- a name that may be thin has a line to be asked for
  kept = redis.pcall("HMGET", KEYS[1], "v", "c:" .. ARGV[1])
end
if not kept or kept.err then
  time, kept, top = fetch(KEYS, ARGV[1])
end
local plain, moment, nearest = fast_acquire(time, kept, KEYS, ARGV[4], ARGV[1], ARGV[2], ARGV[3], ARGV[5])
if plain then
  return plain
end

--- @include "fast/wait"
plain = moment and fast_wait(moment, nearest, kept, top, KEYS, ARGV[4], ARGV[1], ARGV[2], ARGV[5], ARGV[6])
if plain then
  return plain
end

-- What only the other cases need is not even defined before.
--- @include "kind/semaphore"
--- @include "state/ask"
--- @include "state/record"
--- @include "line/acquire"
local waits, _, lane, policy, channel, name = string.match(ARGV[6], ask_acquire)
local at, st, known = kind_open(KEYS, ARGV[4], channel, name, ARGV[1], time, kept, top)
return acquire(at, st, known, {
  claim = ARGV[1], waits = waits ~= "0", lane = lane, r = record_new(string.match(ARGV[2], record_owns)),
  capacity = string.sub(ARGV[5], values_calm_cap, values_calm_cap_end) - values_base, policy = policy,
})
