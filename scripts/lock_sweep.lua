--[[
lock_sweep: drop what has expired and hand on.
KEYS[1] state (HASH v -> values, c:claim -> record, stem; STRING see state/thin)
KEYS[2] line (ZSET place-claim, h:, t:claim, - -> score, see state/score)
ARGV[1] linger (ms)    ARGV[2] channel prefix    ARGV[3] name    ARGV[4] node
ARGV[5] how much of the line to look at (0 = a part, 1 = all of it, 2 = go on with that)
RETURNS {"swept", next_ms, flags, setting, dropped} | {"incompatible", format}
REPLAY drops only what has expired    COST O(log n) + at most 100 drops and grants
]]
--- @include "state/fetch"
--- @include "kind/lock"
--- @include "line/sweep"
local at, st = kind_open(KEYS, ARGV[1], ARGV[2], ARGV[3], nil, fetch(KEYS, nil, "stem"))
return sweep(at, st, ARGV[4], ARGV[5])
