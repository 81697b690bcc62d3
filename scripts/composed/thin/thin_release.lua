--[[
thin_release: end a hold of a thin name.
KEYS[1] state (STRING see state/thin; HASH)
ARGV[1] claim id
RETURNS plain fence | {"fat"}
REPLAY a claim that is gone is answered fat: the general script says not_held    COST O(1)
]]
local text = redis.call("MGET", KEYS[1])[1]
if not text or string.sub(text, (32), (32) + #ARGV[1]) ~= ARGV[1] .. (" ") then
  return { "fat" }
end
local fence = string.sub(text, 1, (17) - 1)
local set = redis.pcall("SET", KEYS[1], fence, "KEEPTTL")
if type(set) == "table" and set.err then
  redis.call("PEXPIRE", KEYS[1], math.max(redis.call("PTTL", KEYS[1]), 60000))
  redis.call("SET", KEYS[1], fence, "KEEPTTL")
end
return fence
