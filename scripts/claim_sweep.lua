--[[
claim_sweep: drop what has expired and hand on.
KEYS[1] state (HASH field -> number, c:claim -> record)
KEYS[2] line (ZSET h:, a:, q:, t:claim -> score, see lib/bands)
ARGV[1] node    ARGV[2] linger (ms)    ARGV[3] channel prefix    ARGV[4] name
RETURNS {"swept", dropped, next_ms, first, more} | {"incompatible", format}
REPLAY drops only what has expired    COST O(log n) + at most 100 drops and grants
]]
--- @include "lib/open"
--- @include "lib/sweep"
--- @include "lib/handoff"
--- @include "lib/tide"
--- @include "lib/save"
--- @include "lib/tell"
local node = ARGV[1]
local at, st, _, newer = open(KEYS[1], KEYS[2], ARGV[2], ARGV[3], ARGV[4])
local out, budget = {}, 100

if newer then
  return { "incompatible", newer }
end
if st.fmt == 0 then
  return { "swept", 0, -1, 0, 0 }
end
local used = st.used
local dropped = sweep(at, st, budget)
local spent = dropped + handoff(at, st, budget - dropped, out)
if spent > 0 or st.used ~= used then
  save(at, st)
end
local next_ms, mine = tide(at, st, node)
tell(out)
return { "swept", dropped, next_ms, mine, spent >= budget and 1 or 0 }
