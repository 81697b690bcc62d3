--[[
semaphore_resume: another node takes up a detached hold.
KEYS[1] state (HASH v -> values, c:claim -> record; STRING see state/thin)
KEYS[2] line (ZSET place-claim, h:, t:claim, - -> score, see state/score)
ARGV[1] linger (ms)    ARGV[2] channel prefix    ARGV[3] name
ARGV[4] node that takes it up    ARGV[5] claim id    ARGV[6] node that detached it
ARGV[7] mode (beat)
RETURNS {"resumed", left_ms, limit_ms, record, extra} | {"attached", left_ms, limit_ms, record, extra}
  | {"not_held", word} | {"taken"} | {"incompatible", format}
REPLAY the new node may ask again; the answer is attached then    COST O(log n)
]]
--- @include "state/fetch"
--- @include "kind/semaphore"
--- @include "line/resume"
local at, st, known = kind_open(KEYS, ARGV[1], ARGV[2], ARGV[3], ARGV[5], fetch(KEYS, ARGV[5]))
return resume(at, st, known, ARGV[5], ARGV[6], ARGV[4], ARGV[7])
