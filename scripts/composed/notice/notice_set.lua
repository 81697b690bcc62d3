--[[
notice_set: an operator tells all clients of a kind to pause, or some of their processes to drain.
KEYS[1] notice (HASH pause, n:node, l:label -> text)
ARGV[1] field    ARGV[2] for how long a pause lasts (ms, 0 = not any more; of a drain 0)
ARGV[3] reason of a pause; of a drain drain or stop    ARGV[4] the number that the caller has seen in the field
ARGV[5] id of the call
RETURNS {"set", number, left_ms} | {"stale", number, left_ms, what} | {"crowded"}
REPLAY the same call is answered again    COST O(n) of at most 10 000 fields
]]
local day, most = 86400000, 100
local field, seen, by = ARGV[1], ARGV[4] + 0, ARGV[5]
local function now(t)
  local seconds, micros = tonumber(t[1]), tonumber(t[2])
  return seconds * 1000 + (micros - micros % 1000) / 1000, seconds * 1000000 + micros
end
local ms = now(redis.call("TIME"))
local number, ends, drains, old = ms, ms, 0, {}
local all
if redis.call("HLEN", KEYS[1]) > 10000 then
  local own = redis.call("HMGET", KEYS[1], field, "pause")
  all, drains = { field, own[1] or "", "pause", own[2] or "" }, own[1] and 0 or most
else
  all = redis.call("HGETALL", KEYS[1])
end
for i = 1, #all, 2 do
  local rev, id, till, what = string.match(all[i + 1], "^(%d+) (%S+) (%d+) (.*)$")
  rev, till = rev and #rev < 16 and rev + 0 or 0, till and #till < 16 and till + 0 or 0
  number = math.max(number, rev + 1)
  if all[i] == field then
    if id == by then
      return { "set", (string.format("%d", (rev))), (string.format("%d", (math.max(till - ms, 0)))) }
    elseif rev > seen then
      return { "stale", (string.format("%d", (rev))), (string.format("%d", (math.max(till - ms, 0)))), what }
    end
  elseif all[i] == "pause" then
    ends = math.max(ends, till)
  elseif rev < ms - day then
    old[math.min(#old, most - 1) + 1] = all[i]
  else
    drains = drains + 1
  end
end
if field ~= "pause" and drains >= most then
  return { "crowded" }
end
local till = ARGV[2] + 0
if till > 0 then
  till = ms + till
end
redis.call("HDEL", KEYS[1], field, unpack(old))
redis.call("HSET", KEYS[1], field, (string.format("%d", (number))) .. " " .. by .. " " .. (string.format("%d", (till))) .. " " .. ARGV[3])
redis.call("PEXPIREAT", KEYS[1], (string.format("%d", (math.max(ends, till) + day))))
return { "set", (string.format("%d", (number))), (string.format("%d", (math.max(till - ms, 0)))) }
