--[[
thin_renew: the heartbeats of holds of thin names.
KEYS[1...] x1: state (STRING see state/thin; HASH)
ARGV[1] linger (ms)    ARGV[2...] x1: claim id (of each name)
RETURNS {"held", left_ms, fence, ...}
REPLAY a lease is counted from now    COST O(1) a name, at most 20 of them
]]
local sub, format = string.sub, string.format
local call = redis.call
local t, linger = redis.call("TIME"), ARGV[1]
local ms = t[1] * 1000 + (t[2] - t[2] % 1000) / 1000
local now = format(("%013d"), ms)
local reply = { "held" }
local texts = call("MGET", unpack(KEYS))
local function renew_on()
  for i = (#reply + 1) / 2, #KEYS do
    local text, from, to = texts[i], nil, nil
    reply[2 * i], reply[2 * i + 1] = 0, 0
    if text then
      from, to = string.find(text, ARGV[i + 1], (32), true)
    end
    if from == (32) then
      local kind, lease, max = string.match(text, ("^ %S+ 1 (%a) %d+ (%d+) (%d+) "), to + 1)
      local limit = max ~= "0" and sub(text, 1, (13)) + max or math.huge
      local ends = math.min(sub(text, (17) + 1, (31) - 1) + lease, limit)
      if ends > ms and kind == "r" then
        call("PEXPIRE", KEYS[i], format("%d", lease + linger))
        call("SETRANGE", KEYS[i], (17), now)
        ends = math.min(ms + lease, limit)
      end
      if ends > ms then
        reply[2 * i], reply[2 * i + 1] = ends - ms, sub(text, 1, (17) - 1)
      end
    end
  end
end
while #reply < 2 * #KEYS do
  pcall(renew_on)
end
return reply
