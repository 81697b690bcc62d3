--[[
fat_renew: the heartbeats of holds of fat names of locks and semaphores, in the plain case.
KEYS[1...] x2: state (HASH v -> values, c:claim -> record, stem; STRING see state/thin), line (ZSET see state/score)
ARGV[1] linger (ms)    ARGV[2] node    ARGV[3...] x1: claim id (of each name)
RETURNS {"held", left_ms, fence, ...}
REPLAY a lease is counted from now    COST O(log n) a name, at most 20 of them
]]
-- Where 0 is left the case is another one, and nothing is written: what became of the hold is for the
-- general script to say. What one name has makes none of the others fail.
--- @include "fast/beats"
--- @include "fast/renew"
local beats = fast_beats(redis.call("TIME"), ARGV[1], ARGV[2])
local reply = { "held" }
-- renew_on answers for the names from the first one on that has no answer yet.
local function renew_on()
  for at = #reply + 1, #KEYS, 2 do
    local claim = ARGV[at / 2 + 2]
    reply[at], reply[at + 1] = 0, 0
    local v = redis.call("HMGET", KEYS[at - 1], "v", "c:" .. claim, "stem")
    local left, fence = fast_renew(beats, v, KEYS[at - 1], KEYS[at], claim)
    if left then
      reply[at], reply[at + 1] = left, fence
    end
  end
end
while #reply < #KEYS do
  pcall(renew_on) -- it goes on behind a name that makes it fail
end
return reply
