--[[
pool_pause: have nothing granted of a pool for some time, or end that and hand on.
KEYS[1] state (HASH v -> values, c:claim -> record, r:claim -> resource, s:resource -> settings)
KEYS[2] line (ZSET place-claim, h:, t:claim, e:, x:, d:resource, u:binding, - -> score, see state/score)
KEYS[3] items (HASH i:resource -> item)
KEYS[4] free (ZSET resource -> its turn)
KEYS[5] bindings (HASH b:name -> end, resource)
ARGV[1] linger (ms)    ARGV[2] channel prefix    ARGV[3] name
ARGV[4] for how long (ms, 0 = end the pause)    ARGV[5] why
ARGV[6] the revision that the caller has seen
ARGV[7] id of the call (walk, first = part of a pause of all names)
ARGV[8] the notice of that pause; of the end of the name's own that which the caller knows (0 = none)
RETURNS {"paused", left_ms, held, waiting, flags} | {"unpaused", left_ms, held, waiting, flags}
  | {"kept", left_ms, held, waiting, flags} | {"idle"} | {"stale", revision, resource, what}
  | {"incompatible", format}
REPLAY the call that decided last is told the same
COST O(log n) + at most 100 drops and grants, 100 wake-ups, 50 lanes
]]
--- @include "kind/pool"
--- @include "line/pause"
--- @include "pool/notify"
local at, st = kind_open(KEYS, ARGV[1], ARGV[2], ARGV[3])
return pause(at, st, tonumber(ARGV[4]), ARGV[5], tonumber(ARGV[6]), ARGV[7], tonumber(ARGV[8]), notify_apart)
