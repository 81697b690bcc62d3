--[[
lock_force_release: end a lock's hold with all its entries, whoever has it, hand on, and tell their nodes.
KEYS[1] state (HASH field -> number, c:claim -> record, stem)
KEYS[2] line (ZSET h:, a:, q:, t:claim -> score, see lib/bands)
ARGV[1] fence (0 = any)    ARGV[2] tombstone (ms)
ARGV[3] linger (ms)    ARGV[4] channel prefix    ARGV[5] name
RETURNS {"released", more, fence, entries} | {"not_held"} | {"other", fence} | {"incompatible", format}
REPLAY with the fence that it answered first    COST O(log n) + O(entries) + at most 100 drops and grants
]]
-- The caller reads the fence first and names it, so that a repeated call does
-- not end the hold of the next in line.
--- @include "lib/open"
--- @include "lib/group"
--- @include "lib/leave"
--- @include "lib/sweep"
--- @include "lib/handoff"
--- @include "lib/wake"
--- @include "lib/save"
--- @include "lib/tell"
local stays = tonumber(ARGV[2])
local at, st, _, newer, stem_text = open(KEYS[1], KEYS[2], ARGV[3], ARGV[4], ARGV[5], nil, "stem")
local out, budget = {}, 100

if newer then
  return { "incompatible", newer }
end
local s = st.used > 0 and group(at, st, stem_text)
if not s then
  return { "not_held" }
end
local fence = s.entries[1].r.fence
if ARGV[1] ~= "0" and ARGV[1] ~= fence then
  return { "other", tonumber(fence) }
end
for _, e in ipairs(s.entries) do
  leave(at, st, e.claim, e.r, true, "released", stays)
  wake(out, at.channel .. e.r.node, "released", at.name, e.claim)
end
redis.call("HDEL", at.state, "stem")
local spent = st.used > 0 and sweep(at, st, budget) or 0
spent = spent + handoff(at, st, budget - spent, out)
save(at, st, at.ms + stays)
tell(out)
return { "released", spent >= budget and 1 or 0, tonumber(fence), #s.entries }
