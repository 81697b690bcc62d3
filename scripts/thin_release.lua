--[[
thin_release: end a hold of a thin name.
KEYS[1] state (STRING see state/thin; HASH)
ARGV[1] claim id
RETURNS plain fence | {"fat"}
REPLAY a claim that is gone is answered fat: the general script says not_held    COST O(1)
]]
-- It does not look at the clock: released is said of a hold whose lease has passed, too. Nobody has
-- held the name since, and the holder compares its own deadline first.
--- @include "state/thin"
local text = redis.call("MGET", KEYS[1])[1]
if not text or string.sub(text, thin_from, thin_from + #ARGV[1]) ~= ARGV[1] .. thin_gap then
  return { "fat" }
end
local fence = string.sub(text, 1, thin_before - 1)
local set = redis.pcall("SET", KEYS[1], fence, "KEEPTTL")
if type(set) == "table" and set.err then -- a full server refuses a first write that may grow
  redis.call("PEXPIRE", KEYS[1], math.max(redis.call("PTTL", KEYS[1]), 60000))
  redis.call("SET", KEYS[1], fence, "KEEPTTL")
end
return fence
