--[[
semaphore_acquire: take weight permits, or join the line.
KEYS[1] state (HASH field -> number, c:claim -> record)
KEYS[2] line (ZSET h:, a:, q:, t:claim -> score, see state/band)
ARGV[1] linger (ms)    ARGV[2] channel prefix    ARGV[3] name    ARGV[4] node
ARGV[5] claim id    ARGV[6] wait (1) or try (0)
ARGV[7] priority    ARGV[8] wait lease (ms)    ARGV[9] lease (ms, 0 = forever)
ARGV[10] maximum hold (ms, 0 = none)    ARGV[11] tail of the record, see state/record
ARGV[12] weight    ARGV[13] capacity    ARGV[14] policy (stored, strict, override)
RETURNS {"granted", ticket, fence, left_ms, flags, setting}
  | {"queued", ticket, fence, left_ms, flags, setting, extra, place, ahead, next_ms}
  | {"full", held, waiting, swept, flags, setting} | {"ahead", held, waiting, swept, flags, setting}
  | {"too_heavy", held, waiting, swept, flags, setting} | {"differs", held, waiting, swept, flags, setting}
  | {"gone"} | {"foreign"} | {"incompatible", format}
REPLAY the same claim gets the same answer    COST O(log n) + at most 100 drops and grants
]]
-- The fields are those of line/reply.
--- @include "state/fetch"
--- @include "quick/grant"
local time, kept = fetch(KEYS[1], ARGV[5])
local capacity = tonumber(ARGV[13])
local plain = quick_grant(time, kept, KEYS, ARGV[5], ARGV[4], ARGV[11], ARGV[12], ARGV[13],
  ARGV[8], ARGV[9], ARGV[10], ARGV[1], capacity)
if plain then
  return plain
end

-- What only the other cases need is not even defined before.
--- @include "kind/semaphore"
--- @include "state/record"
--- @include "line/acquire"
local at, st, known = kind_open(KEYS, ARGV[1], ARGV[2], ARGV[3], time, kept)
return acquire(at, st, known, {
  claim = ARGV[5], waits = ARGV[6] ~= "0", priority = tonumber(ARGV[7]),
  r = record_new(ARGV[4], tonumber(ARGV[12]), tonumber(ARGV[8]), tonumber(ARGV[9]), tonumber(ARGV[10]), ARGV[11]),
  capacity = capacity, policy = ARGV[14],
})
