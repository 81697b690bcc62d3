--[[
swarm_dead: some of the nodes that are to be flushed, or may be.
KEYS[1] state (HASH fmt, n:node -> record, t:node -> run, see lib/watch)
KEYS[2] probes (ZSET p:, c:, t:node -> score, see lib/watch)
ARGV[1] memory (ms)    ARGV[2] from (0 to begin)    ARGV[3] how many of each
RETURNS {"page", from, more, ...} | {"incompatible", format}
REPLAY reads only    COST O(log n + page)
]]
local function now(t)
  local seconds, micros = tonumber(t[1]), tonumber(t[2])
  return seconds * 1000 + (micros - micros % 1000) / 1000, seconds * 1000000 + micros
end
local function watch(state, probes)
  local width = 17592186044416
  local at = { state = state, probes = probes, ms = now(redis.call("TIME")), condemned = width, left = 2 * width }
  local format = tonumber(redis.call("HGET", state, "fmt")) or 0
  return at, format > 1 and format or nil
end
local memory, from, many = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local at, newer = watch(KEYS[1], KEYS[2])
if newer then
  return { "incompatible", newer }
end
local overdue = redis.call("ZRANGEBYSCORE", at.probes, 0, at.ms, "LIMIT", 0, many)
local first = math.max(at.condemned + at.ms - memory + 1, from)
local condemned = redis.call("ZRANGEBYSCORE", at.probes, first, at.left - 1, "WITHSCORES", "LIMIT", 0, many)
local reply = { "page", from, 0 }
for _, member in ipairs(overdue) do
  reply[#reply + 1], reply[#reply + 2] = string.sub(member, 3), 0
end
for i = 1, #condemned, 2 do
  reply[#reply + 1], reply[#reply + 2] = string.sub(condemned[i], 3), 1
  reply[2] = tonumber(condemned[i + 1]) + 1
end
if #overdue >= many or #condemned >= 2 * many then
  reply[3] = 1
end
return reply

