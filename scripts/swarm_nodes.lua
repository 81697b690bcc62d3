--[[
swarm_nodes: some of the nodes of a swarm, in no order.
KEYS[1] state (HASH fmt, n:node -> record, t:node -> run, see swarm/open)
KEYS[2] probes (ZSET p:, c:, t:node -> score, see swarm/open)
ARGV[1] cursor (0 to begin)    ARGV[2] about how many
RETURNS {"page", cursor, now_ms, ...} | {"incompatible", format}
REPLAY reads only    COST O(page)
]]
-- The cursor is 0 when all have been seen. For each node five fields follow: its
-- id, its label, when it is dead unless it probes (ms), its own zombie limit (ms)
-- and when it was condemned (ms, 0 = it is not).
--- @include "swarm/open"
--- @include "swarm/member"
local at, newer = open_swarm(KEYS[1], KEYS[2])

if newer then
  return { "incompatible", newer }
end
local page = redis.call("HSCAN", at.state, ARGV[1], "MATCH", "n:*", "COUNT", ARGV[2])
local reply = { "page", page[1], at.ms }
for i = 1, #page[2], 2 do
  local node, m = string.sub(page[2][i], 3), member_read(page[2][i + 1])
  local scores = redis.call("ZMSCORE", at.probes, "p:" .. node, "c:" .. node)
  local ends, condemned = tonumber(scores[1]), tonumber(scores[2])
  if m and (ends or condemned) then
    reply[#reply + 1], reply[#reply + 2] = node, m.label
    reply[#reply + 1], reply[#reply + 2] = ends or m.ends, m.limit
    reply[#reply + 1] = condemned and condemned - at.condemned or 0
  end
end
return reply
