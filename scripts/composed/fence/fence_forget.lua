--[[
fence_forget: forget what was admitted, unless that is a greater fence.
KEYS[1] guard (HASH fence -> the greatest admitted)
ARGV[1] fence
RETURNS {"forgotten"} | {"stale", greatest} | {"incompatible"}
REPLAY a greater fence that was admitted in between stays    COST O(1)
]]
local function outdated(key, fence)
  local kept = redis.call("HGET", key, "fence") or "0"
  local whole = "^[1-9]%d*$"
  if not string.find(fence, whole) or kept ~= "0" and not string.find(kept, whole) then
    return true, kept
  end
  return #kept > #fence or #kept == #fence and kept > fence, kept
end
local old, greatest = outdated(KEYS[1], ARGV[1])
if not old then
  redis.call("HDEL", KEYS[1], "fence")
  return { "forgotten" }
elseif string.find(greatest, "^[1-9]%d*$") then
  return { "stale", greatest }
end
return { "incompatible" }
