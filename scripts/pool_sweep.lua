--[[
pool_sweep: drop what has expired, end rests that are over, and hand on.
KEYS[1] state (HASH v -> values, c:claim -> record, r:claim -> resource, s:resource -> settings)
KEYS[2] line (ZSET place-claim, h:, t:claim, e:, x:, d:resource, u:binding, - -> score, see state/score)
KEYS[3] items (HASH i:resource -> item)
KEYS[4] free (ZSET resource -> its turn)
KEYS[5] bindings (HASH b:name -> end, resource)
ARGV[1] linger (ms)    ARGV[2] channel prefix    ARGV[3] name    ARGV[4] node
ARGV[5] how much of the line to look at (0 = a part, 1 = all of it, 2 = go on with that)
RETURNS {"swept", next_ms, flags, setting, dropped, ...} | {"incompatible", format}
REPLAY drops only what has expired    COST O(log n) + at most 100 drops and grants
]]
-- Then follow the resources that were found damaged and not told of before, up to 100.
--- @include "kind/pool"
--- @include "state/touch"
--- @include "line/sweep"
local at, st = kind_open(KEYS, ARGV[1], ARGV[2], ARGV[3])
if not at.newer and st.form then
  touch(at, st) -- a full server must be able to grant
end
return sweep(at, st, ARGV[4], ARGV[5])
