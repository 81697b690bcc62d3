--[[
lock_acquire: take a lock, join the line, or enter once more what the owner holds.
KEYS[1] state (HASH field -> number, c:claim -> record, stem)
KEYS[2] line (ZSET h:, a:, q:, t:claim -> score, see state/band)
ARGV[1] linger (ms)    ARGV[2] channel prefix    ARGV[3] name    ARGV[4] node
ARGV[5] claim id    ARGV[6] wait (0 = try, 1 = until an end, 2 = without end)
ARGV[7] priority    ARGV[8] wait lease (ms)    ARGV[9] lease (ms, 0 = forever)
ARGV[10] maximum hold (ms, 0 = none)    ARGV[11] tail of the record, see state/record
ARGV[12] owner ("" = the claim)    ARGV[13] conflict (fail, wait, work, extend)
ARGV[14] access (queued, random, lifo)    ARGV[15] draw (0 up to 2^32)
RETURNS {"granted", ticket, fence, left_ms, flags, setting}
  | {"reentered", ticket, fence, left_ms, flags, setting, extra}
  | {"queued", ticket, fence, left_ms, flags, setting, extra, place, ahead, next_ms}
  | {"held", held, waiting, swept, flags, setting} | {"ahead", held, waiting, swept, flags, setting}
  | {"crowded", held, waiting, swept, flags, setting} | {"deadlock", held, waiting, swept, flags, setting}
  | {"gone"} | {"foreign"} | {"incompatible", format}
REPLAY the same claim gets the same answer    COST O(log n) + O(entries) + at most 100 drops and grants
]]
-- The fields are those of line/reply; extra is in owner/reentered.
--- @include "state/fetch"
--- @include "quick/grant"
local time, kept = fetch(KEYS[1], ARGV[5], "stem")
local plain = quick_grant(time, kept, KEYS, ARGV[5], ARGV[4], ARGV[11], "1", "1",
  ARGV[8], ARGV[9], ARGV[10], ARGV[1])
if plain then
  return plain
end

-- What only the other cases need is not even defined before.
--- @include "kind/lock"
--- @include "state/record"
--- @include "line/acquire"
local at, st, known = kind_open(KEYS, ARGV[1], ARGV[2], ARGV[3], time, kept)
return acquire(at, st, known, {
  claim = ARGV[5], waits = ARGV[6] ~= "0", endless = ARGV[6] == "2", priority = tonumber(ARGV[7]),
  r = record_new(ARGV[4], 1, tonumber(ARGV[8]), tonumber(ARGV[9]), tonumber(ARGV[10]), ARGV[11]),
  owner = ARGV[12] ~= "" and ARGV[12] or nil, conflict = ARGV[13], access = ARGV[14], draw = tonumber(ARGV[15]),
})
