--[[
semaphore_pause: have nothing granted of a semaphore for some time, or end that and hand on.
KEYS[1] state (HASH v -> values, c:claim -> record; STRING see state/thin)
KEYS[2] line (ZSET place-claim, h:, t:claim, - -> score, see state/score)
ARGV[1] linger (ms)    ARGV[2] channel prefix    ARGV[3] name
ARGV[4] for how long (ms, 0 = end the pause)    ARGV[5] why
ARGV[6] the revision that the caller has seen
ARGV[7] id of the call (walk, first = part of a pause of all names)
ARGV[8] the notice of that pause; of the end of the name's own that which the caller knows (0 = none)
RETURNS {"paused", left_ms, held, waiting, flags} | {"unpaused", left_ms, held, waiting, flags}
  | {"kept", left_ms, held, waiting, flags} | {"idle"} | {"stale", revision, resource, what}
  | {"incompatible", format}
REPLAY the call that decided last is told the same    COST O(log n) + at most 100 drops and grants, 50 wake-ups
]]
--- @include "state/fetch"
--- @include "kind/semaphore"
--- @include "line/pause"
local at, st = kind_open(KEYS, ARGV[1], ARGV[2], ARGV[3], nil, fetch(KEYS))
return pause(at, st, tonumber(ARGV[4]), ARGV[5], tonumber(ARGV[6]), ARGV[7], tonumber(ARGV[8]))
