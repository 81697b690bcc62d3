--[[
semaphore_sweep: drop what has expired and hand on.
KEYS[1] state (HASH field -> number, c:claim -> record)
KEYS[2] line (ZSET h:, a:, q:, t:claim -> score, see state/band)
ARGV[1] linger (ms)    ARGV[2] channel prefix    ARGV[3] name    ARGV[4] node
RETURNS {"swept", next_ms, flags, setting, dropped} | {"incompatible", format}
REPLAY drops only what has expired    COST O(log n) + at most 100 drops and grants
]]
--- @include "state/fetch"
--- @include "kind/semaphore"
--- @include "line/sweep"
local at, st = kind_open(KEYS, ARGV[1], ARGV[2], ARGV[3], fetch(KEYS[1]))
return sweep(at, st, ARGV[4])
