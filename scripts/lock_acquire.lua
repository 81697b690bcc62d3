--[[
lock_acquire: take a lock, join the line, or enter once more what the owner holds.
KEYS[1] state (HASH v -> values, c:claim -> record, stem; STRING see state/thin)
KEYS[2] line (ZSET place-claim, h:, t:claim, - -> score, see state/score)
ARGV[1] linger (ms)    ARGV[2] channel prefix    ARGV[3] name    ARGV[4] node
ARGV[5] claim id    ARGV[6] wait (0 = try, 1 = until an end, 2 = without end)
ARGV[7] lane, see line/place    ARGV[8] fixed terms of the record, see state/record
ARGV[9] how ("" = by its ticket and for itself, else see owner/ask)
ARGV[10] lease of a plain claim (ms, else "")    ARGV[11] its wait lease (ms, else "")
RETURNS {"plain", fence} | {"joined", ticket, ahead, next_ms, flags}
  | {"granted", ticket, fence, left_ms, flags, setting}
  | {"reentered", ticket, fence, left_ms, flags, setting, extra}
  | {"queued", ticket, fence, left_ms, flags, setting, extra, place, ahead, next_ms}
  | {"held", held, waiting, swept, flags, setting} | {"ahead", held, waiting, swept, flags, setting}
  | {"crowded", held, waiting, swept, flags, setting} | {"deadlock", held, waiting, swept, flags, setting}
  | {"paused", held, waiting, swept, flags, setting, extra, left_ms, since, reason}
  | {"gone"} | {"foreign"} | {"incompatible", format}
REPLAY the same claim gets the same answer    COST O(log n) + O(entries) + at most 100 drops and grants
]]
-- A plain claim has no maximum hold, and a lease no longer than its wait lease. The fields are those of line/reply;
-- extra is in owner/reentered.
--- @include "state/fetch"
--- @include "state/values"
--- @include "fast/acquire"
local time, kept, top = fetch(KEYS, ARGV[5], "stem")
local plain, full = fast_acquire(time, kept, KEYS, ARGV[1], ARGV[4], ARGV[5], ARGV[8], values_one, ARGV[10], ARGV[11])
if plain then
  return plain
end

--- @include "fast/wait"
plain = full and ARGV[6] ~= "0" and ARGV[9] == ""
  and fast_wait(full, top, KEYS, ARGV[1], ARGV[4], ARGV[5], ARGV[7], ARGV[8], values_one)
if plain then
  return plain
end

-- What only the other cases need is not even defined before.
--- @include "kind/lock"
--- @include "state/record"
--- @include "owner/ask"
--- @include "line/acquire"
local at, st, known = kind_open(KEYS, ARGV[1], ARGV[2], ARGV[3], ARGV[5], time, kept, top)
return acquire(at, st, known, owner_ask(ARGV[9], {
  claim = ARGV[5], waits = ARGV[6] ~= "0", endless = ARGV[6] == "2", lane = ARGV[7], r = record_new(ARGV[4], ARGV[8]),
}))
