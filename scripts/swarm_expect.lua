--[[
swarm_expect: nodes that hold without end, and that the swarm does not know, are to probe.
KEYS[1] state (HASH fmt, n:node -> record, t:node -> run, see swarm/open)
KEYS[2] probes (ZSET p:, c:, t:node -> score, see swarm/open)
ARGV[1] memory (ms)
ARGV[2...] x3: node, its own zombie limit (ms), its label
RETURNS {"expected", entered} | {"incompatible", format}
REPLAY a node that is known stays as it is    COST O(log n) a node
]]
-- Their claims say that they are in the swarm, so the server has lost what it knew of
-- them. Each is entered as if it had probed now, and has its whole limit to do so.
--- @include "swarm/open"
--- @include "swarm/member"
--- @include "swarm/expiry"
local memory, entered = tonumber(ARGV[1]), 0
local at, newer = open_swarm(KEYS[1], KEYS[2])

if newer then
  return { "incompatible", newer }
end
for i = 2, #ARGV, 3 do
  local node, limit, label = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local scores = redis.call("ZMSCORE", at.probes, "p:" .. node, "c:" .. node)
  if not scores[1] and not scores[2] then
    redis.call("HSET", at.state, "fmt", 2, "n:" .. node, member_write("0", "0", limit, label))
    redis.call("ZADD", at.probes, at.ms + tonumber(limit), "p:" .. node)
    entered = entered + 1
  end
end
if entered > 0 then
  set_expiry(at, memory)
end
return { "expected", entered }
