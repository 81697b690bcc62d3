--[[
thin_renew: the heartbeat of a hold of a thin name.
KEYS[1] state (STRING see state/thin; HASH)
ARGV[1] claim id    ARGV[2] linger (ms)
RETURNS {"held", left_ms, fence} | {"fat"}
REPLAY a lease is counted from now    COST O(1)
]]
local t, text = redis.call("TIME"), redis.call("MGET", KEYS[1])[1]
local behind = (32) + #ARGV[1]
if not text or string.sub(text, (32), behind) ~= ARGV[1] .. (" ") then
  return { "fat" }
end
local kind, lease, max = string.match(text, ("^%S+ 1 (%a) %d+ (%d+) (%d+) "), behind + 1)
local ms = t[1] * 1000 + (t[2] - t[2] % 1000) / 1000
local limit = max ~= "0" and string.sub(text, 1, (13)) + max or math.huge
local ends = math.min(string.sub(text, (17) + 1, (31) - 1) + lease, limit)
if ends <= ms then
  return { "fat" }
elseif kind == "r" then
  local renewed = string.sub(text, 1, (17)) .. string.format(("%013d"), ms) .. string.sub(text, (31))
  local px = string.format("%d", lease + ARGV[2])
  local set = redis.pcall("SET", KEYS[1], renewed, "PX", px)
  if type(set) == "table" and set.err then
    redis.call("PEXPIRE", KEYS[1], px)
    redis.call("SET", KEYS[1], renewed, "PX", px)
  end
  ends = math.min(ms + lease, limit)
end
return { "held", ends - ms, string.sub(text, 1, (17) - 1) }
