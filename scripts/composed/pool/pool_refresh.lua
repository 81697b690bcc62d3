--[[
pool_refresh: whose turn it is to ask the source of a pool: one at a time.
KEYS[1] state (HASH v -> values, refresh -> due, turn)
ARGV[1] id of the turn, <node>.<xid>    ARGV[2] how long until the next one (ms)
ARGV[3] still at it (1) or ask for it (0)    ARGV[4] linger (ms)
RETURNS {"turn"} | {"later", left_ms} | {"incompatible", format}
REPLAY who has the turn has it still    COST O(1)
]]
local function now(t)
  local seconds, micros = t[1] + 0, t[2] + 0
  return seconds * 1000 + (micros - micros % 1000) / 1000, seconds * 1000000 + micros
end
local turn, every, still, ms = ARGV[1], tonumber(ARGV[2]), ARGV[3] == "1", now(redis.call("TIME"))
local text, former, last = unpack(redis.call("HMGET", KEYS[1], "v", "fmt", "refresh"))
local function number_newer(text, former)
  local number = tonumber(string.match(text or former or "", ("^%d+")) or nil)
  return number and (number < (3) or number > (3)) and number or nil
end
local format = number_newer(text, former)
if format then
  return { "incompatible", format }
end
local due, whose = string.match(last or "0 -", "^(%d+) (.*)$")
local left = tonumber(due) - ms
if whose ~= turn and (still or left > 0) then
  return { "later", math.max(left, 0) }
end
redis.call("HSET", KEYS[1], "refresh", string.format("%.0f ", ms + every) .. turn)
if not text then
  redis.call("PEXPIRE", KEYS[1], every + tonumber(ARGV[4]))
end
return { "turn" }
