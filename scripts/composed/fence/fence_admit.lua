--[[
fence_admit: refuse a fence that is older than one that was admitted before.
KEYS[1] guard (HASH fence -> the greatest admitted)
ARGV[1] fence
RETURNS {"admitted"} | {"stale", greatest} | {"incompatible"}
REPLAY the same fence is admitted again until a greater one is    COST O(1)
]]
local function admit(key, fence)
local function outdated(key, fence)
  local kept = redis.call("HGET", key, "fence") or "0"
  local whole = "^[1-9]%d*$"
  if not string.find(fence, whole) or kept ~= "0" and not string.find(kept, whole) then
    return true, kept
  end
  return #kept > #fence or #kept == #fence and kept > fence, kept
end
  local old, kept = outdated(key, fence)
  if not old and kept ~= fence then
    redis.call("HSET", key, "fence", fence)
  end
  return not old, kept
end
local admitted, greatest = admit(KEYS[1], ARGV[1])
if admitted then
  return { "admitted" }
elseif string.find(greatest, "^[1-9]%d*$") then
  return { "stale", greatest }
end
return { "incompatible" }
