--[[
thin_acquire: take a lock, or a semaphore of capacity 1, whose name is thin and idle, or not there yet.
KEYS[1] state (STRING see state/thin; HASH)
ARGV[1] claim id    ARGV[2] fixed terms of the record, see state/record    ARGV[3] lease + linger (ms)
RETURNS plain fence | {"fat"}
REPLAY a claim that holds is answered fat: the general script says the same again    COST O(1)
]]
-- The lease is neither above the wait lease nor above the linger. fat says that the name is
-- fat, or held, or that its fence lies ahead of the clock: all that is for the general script.
--- @include "state/thin"
local t, text = redis.call("TIME"), redis.call("MGET", KEYS[1])[1]
local fence = t[1] .. string.sub("00000", #t[2]) .. t[2]
if #fence < 16 then
  fence = string.rep("0", 16 - #fence) .. fence
end
if text and (#text ~= 16 or text >= fence or not string.find(text, thin_idle)) then
  return { "fat" }
end
local held = fence .. thin_gap .. string.sub(fence, 1, thin_millis) .. thin_gap .. ARGV[1] .. thin_gap .. ARGV[2]
if text then
  redis.call("SET", KEYS[1], held, "PX", ARGV[3])
elseif not redis.call("SET", KEYS[1], held, "PX", ARGV[3], "NX") then
  return { "fat" }
end
return fence
