--[[
semaphore_acquire: take weight permits, or join the line.
KEYS[1] state (HASH v -> values, c:claim -> record; STRING see state/thin)
KEYS[2] line (ZSET place-claim, h:, t:claim, - -> score, see state/score)
ARGV[1] linger (ms)    ARGV[2] channel prefix    ARGV[3] name    ARGV[4] node
ARGV[5] claim id    ARGV[6] wait (1) or try (0)    ARGV[7] lane, see line/place
ARGV[8] fixed terms of the record, see state/record
ARGV[9] values_base + capacity    ARGV[10] policy (stored, strict, override)
ARGV[11] lease of a plain claim (ms, else "")    ARGV[12] its wait lease (ms, else "")
RETURNS {"plain", fence} | {"joined", ticket, ahead, next_ms, flags}
  | {"granted", ticket, fence, left_ms, flags, setting}
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
local time, kept, top
if ARGV[9] == values_one then
  time, kept, top = fetch(KEYS, ARGV[5])
else
  time, kept, top = fetch_fat(KEYS, ARGV[5])
end
local plain, full = fast_acquire(time, kept, KEYS, ARGV[1], ARGV[4], ARGV[5], ARGV[8], ARGV[9], ARGV[11], ARGV[12])
if plain then
  return plain
end

--- @include "fast/wait"
plain = full and ARGV[6] ~= "0" and fast_wait(full, top, KEYS, ARGV[1], ARGV[4], ARGV[5], ARGV[7], ARGV[8], ARGV[9])
if plain then
  return plain
end

-- What only the other cases need is not even defined before.
--- @include "kind/semaphore"
--- @include "state/record"
--- @include "line/acquire"
local at, st, known = kind_open(KEYS, ARGV[1], ARGV[2], ARGV[3], ARGV[5], time, kept, top)
return acquire(at, st, known, {
  claim = ARGV[5], waits = ARGV[6] ~= "0", lane = ARGV[7], r = record_new(ARGV[4], ARGV[8]),
  capacity = ARGV[9] - values_base, policy = ARGV[10],
})
