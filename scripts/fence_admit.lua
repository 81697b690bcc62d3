--[[
fence_admit: refuse a fence that is older than one that was admitted before.
KEYS[1] guard (HASH fence -> the greatest admitted)
ARGV[1] fence
RETURNS {"admitted"} | {"stale", greatest} | {"incompatible"}
REPLAY the same fence is admitted again until a greater one is    COST O(1)
]]
--- @include "fence/admit"
local admitted, greatest = admit(KEYS[1], ARGV[1])
if admitted then
  return { "admitted" }
elseif string.find(greatest, "^[1-9]%d*$") then
  return { "stale", greatest }
end
return { "incompatible" }
