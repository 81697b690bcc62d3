--[[
thin_renew: the heartbeats of holds of thin names.
KEYS[1...] x1: state (STRING see state/thin; HASH)
ARGV[1] linger (ms)    ARGV[2...] x1: claim id (of each name)
RETURNS {"held", left_ms, fence, ...}
REPLAY a lease is counted from now    COST O(1) a name, at most 20 of them
]]
-- A hold that does not renew by itself is only looked at. Where 0 is left the name is fat, or
-- the hold has ended: what became of it is for the general script to say. What one name has
-- makes none of the others fail.
--- @include "state/thin"
local sub, format = string.sub, string.format
local call = redis.call
local t, linger = redis.call("TIME"), ARGV[1]
local ms = t[1] * 1000 + (t[2] - t[2] % 1000) / 1000
local now = format(thin_ms, ms)
local reply = { "held" }
local texts = call("MGET", unpack(KEYS))
-- renew_on answers for the names from the first one on that has no answer yet.
local function renew_on()
  for i = (#reply + 1) / 2, #KEYS do
    local text, from, to = texts[i], nil, nil
    reply[2 * i], reply[2 * i + 1] = 0, 0
    if text then
      from, to = string.find(text, ARGV[i + 1], thin_from, true)
    end
    if from == thin_from then
      local kind, lease, max = string.match(text, thin_terms, to + 1)
      local limit = max ~= "0" and sub(text, 1, thin_millis) + max or math.huge
      local ends = math.min(sub(text, thin_before + 1, thin_behind - 1) + lease, limit)
      if ends > ms and kind == "r" then
        call("PEXPIRE", KEYS[i], format("%d", lease + linger)) -- needs no memory: the rest works on a full server
        call("SETRANGE", KEYS[i], thin_before, now)
        ends = math.min(ms + lease, limit)
      end
      if ends > ms then
        reply[2 * i], reply[2 * i + 1] = ends - ms, sub(text, 1, thin_before - 1)
      end
    end
  end
end
while #reply < 2 * #KEYS do
  pcall(renew_on) -- it goes on behind a name that makes it fail
end
return reply
