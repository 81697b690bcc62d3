--[[
lock_extend: move the deadline of a hold, whoever has it, further off.
KEYS[1] state (HASH field -> number, c:claim -> record, stem)
KEYS[2] line (ZSET h:, a:, q:, t:claim -> score, see lib/bands)
ARGV[1] by how much (ms)    ARGV[2] id of this call    ARGV[3] fence (0 = any)
ARGV[4] linger (ms)    ARGV[5] channel prefix    ARGV[6] name
RETURNS {"extended", left_ms, fence} | {"not_held"} | {"other", fence} | {"incompatible", format}
REPLAY the same call id adds nothing    COST O(log n) + O(entries)
]]
--- @include "lib/open"
--- @include "lib/bands"
--- @include "lib/group"
--- @include "lib/move"
--- @include "lib/span"
--- @include "lib/touch"
--- @include "lib/save"
local more, call = tonumber(ARGV[1]), ARGV[2]
local at, st, _, newer, stem_text = open(KEYS[1], KEYS[2], ARGV[4], ARGV[5], ARGV[6], nil, "stem")

if newer then
  return { "incompatible", newer }
end
local s = st.used > 0 and group(at, st, stem_text)
if not s then
  return { "not_held" }
end
if ARGV[3] ~= "0" and ARGV[3] ~= s.entries[1].r.fence then
  return { "other", tonumber(s.entries[1].r.fence) }
end
touch(at, st)
if not string.find(s.call, call, 1, true) and s.deadline < bands().forever then
  s.own, s.deadline, s.more = s.own + more, s.deadline + more, s.more + more
  s.call = string.sub(call .. "," .. s.call, 1, 100) -- the last ones: others may call in between
  local scores, fields, furthest = move(st, s)
  if #scores > 0 then
    redis.call("ZADD", at.line, unpack(scores))
  end
  save(at, st, furthest, unpack(fields))
end
local furthest = 0
for _, e in ipairs(s.entries) do
  furthest = math.max(furthest, e.held)
end
return { "extended", span(at, furthest), tonumber(s.entries[1].r.fence) }
