--[[
lock_acquire: take a lock, join the line, or enter once more what the owner holds.
KEYS[1] state (HASH v -> values, c:claim -> record, stem; STRING see state/thin)
KEYS[2] line (ZSET place-claim, h:, t:claim, - -> score, see state/score)
ARGV[1] claim id    ARGV[2] node and fixed terms, as the record ends
ARGV[3] lease of a plain claim (ms, else "")    ARGV[4] linger (ms)
ARGV[5] how ("" = by its ticket and for itself, else see owner/ask)    ARGV[6] the rest, see state/ask
RETURNS plain fence | {"granted", ticket, fence, left_ms, flags, setting}
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
local time, kept, top = fetch(KEYS, ARGV[1], "stem")
local plain, moment, nearest = fast_acquire(time, kept, KEYS, ARGV[4], ARGV[1], ARGV[2], ARGV[3], values_lone)
if plain then
  return plain
end

--- @include "fast/wait"
plain = moment and ARGV[5] == ""
  and fast_wait(moment, nearest, kept, top, KEYS, ARGV[4], ARGV[1], ARGV[2], values_lone, ARGV[6])
if plain then
  return plain
end

-- What only the other cases need is not even defined before.
--- @include "kind/lock"
--- @include "state/ask"
--- @include "state/record"
--- @include "owner/ask"
--- @include "line/acquire"
local waits, _, lane, _, channel, name = string.match(ARGV[6], ask_acquire)
local at, st, known = kind_open(KEYS, ARGV[4], channel, name, ARGV[1], time, kept, top)
return acquire(at, st, known, owner_ask(ARGV[5], {
  claim = ARGV[1], waits = waits ~= "0", endless = waits == "2", lane = lane,
  r = record_new(string.match(ARGV[2], record_owns)),
}))
