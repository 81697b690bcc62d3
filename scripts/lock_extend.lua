--[[
lock_extend: move the deadline of a hold, whoever has it, further off.
KEYS[1] state (HASH v -> values, c:claim -> record, stem; STRING see state/thin)
KEYS[2] line (ZSET place-claim, h:, t:claim, - -> score, see state/score)
ARGV[1] linger (ms)    ARGV[2] channel prefix    ARGV[3] name
ARGV[4] by how much (ms)    ARGV[5] id of this call    ARGV[6] fence (0 = any)
RETURNS {"extended", left_ms, fence} | {"not_held"} | {"other", fence} | {"incompatible", format}
REPLAY the same call id adds nothing    COST O(log n) + O(entries)
]]
--- @include "state/fetch"
--- @include "kind/lock"
--- @include "state/score"
--- @include "state/fatten"
--- @include "state/touch"
--- @include "state/save"
--- @include "line/batch"
--- @include "line/remaining"
--- @include "owner/live"
--- @include "owner/deadline"
local more, call = tonumber(ARGV[4]), ARGV[5]
local at, st = kind_open(KEYS, ARGV[1], ARGV[2], ARGV[3], nil, fetch(KEYS, nil, "stem"))

if at.newer then
  return { "incompatible", at.newer }
end
local s = st.used > 0 and live_group(at, st)
if not s then
  return { "not_held" }
end
if ARGV[6] ~= "0" and ARGV[6] - s.entries[1].r.fence ~= 0 then
  return { "other", tonumber(s.entries[1].r.fence) }
end
fatten(at, st, false)
touch(at, st)
if not string.find(s.call, call, 1, true) and s.deadline < score_forever then
  s.own, s.deadline, s.more = s.own + more, s.deadline + more, s.more + more
  s.call = string.sub(call .. "," .. s.call, 1, 100) -- the last ones: others may call in between
  local m = batch()
  set_deadlines(st, s, m)
  batch_write(at, st, m)
  save(at, st, m.furthest, m.fields)
end
local furthest = 0
for _, e in ipairs(s.entries) do
  furthest = math.max(furthest, e.r.held)
end
return { "extended", remaining(at, furthest), tonumber(s.entries[1].r.fence) }
