--[[
swarm_dead: some of the nodes that are to be flushed, or may be.
KEYS[1] state (HASH fmt, n:node -> record, t:node -> run, see swarm/open)
KEYS[2] probes (ZSET p:, c:, t:node -> score, see swarm/open)
ARGV[1] memory (ms)    ARGV[2] from (0 to begin)    ARGV[3] how many of each
RETURNS {"page", from, more, ...} | {"incompatible", format}
REPLAY reads only    COST O(log n + page)
]]
-- For each node two fields follow: its id, and 1 if it was condemned within the
-- memory, or 0 if it has not probed within its own limit. The latter are those
-- that have been dead for the longest time; from does not apply to them.
--- @include "swarm/open"
local memory, from, many = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local at, newer = open_swarm(KEYS[1], KEYS[2])

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
