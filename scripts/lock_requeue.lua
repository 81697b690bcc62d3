--[[
lock_requeue: a waiting claim goes to the end of the line.
KEYS[1] state (HASH v -> values, c:claim -> record, stem; STRING see state/thin)
KEYS[2] line (ZSET place-claim, h:, t:claim, - -> score, see state/score)
ARGV[1] linger (ms)    ARGV[2] channel prefix    ARGV[3] name    ARGV[4] node
ARGV[5] claim id    ARGV[6] ticket that it has    ARGV[7] lane, see line/place
RETURNS {"queued", ticket, fence, left_ms, flags, setting, extra, place, ahead, next_ms} | {"not_waiting"}
  | {"incompatible", format}
REPLAY a claim that has another ticket stays where it is    COST O(log n) + at most 100 drops and grants
]]
--- @include "state/fetch"
--- @include "kind/lock"
--- @include "line/requeue"
local at, st, known = kind_open(KEYS, ARGV[1], ARGV[2], ARGV[3], ARGV[5], fetch(KEYS, ARGV[5], "stem"))
return requeue(at, st, known, ARGV[5], ARGV[4], ARGV[6], ARGV[7])
