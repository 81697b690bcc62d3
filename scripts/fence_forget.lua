--[[
fence_forget: forget what was admitted, unless that is a greater fence.
KEYS[1] guard (HASH fence -> the greatest admitted)
ARGV[1] fence
RETURNS {"forgotten"} | {"stale", greatest} | {"incompatible"}
REPLAY a greater fence that was admitted in between stays    COST O(1)
]]
--- @include "fence/outdated"
local old, greatest = outdated(KEYS[1], ARGV[1])
if not old then
  redis.call("HDEL", KEYS[1], "fence")
  return { "forgotten" }
elseif string.find(greatest, "^[1-9]%d*$") then
  return { "stale", greatest }
end
return { "incompatible" }
