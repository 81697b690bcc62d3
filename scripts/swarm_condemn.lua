--[[
swarm_condemn: find a node dead, if it has not probed within its own limit.
KEYS[1] state (HASH fmt, n:node -> record, t:node -> run, see swarm/open)
KEYS[2] probes (ZSET p:, c:, t:node -> score, see swarm/open)
ARGV[1] node    ARGV[2] memory (ms)
RETURNS {"condemned", fresh, more} | {"alive", left_ms} | {"unknown"} | {"incompatible", format}
REPLAY who is condemned stays so; fresh is 1 for the call that did it    COST O(log n) + at most 100 drops
]]
--- @include "swarm/open"
--- @include "swarm/member"
--- @include "swarm/expiry"
--- @include "swarm/condemn"
--- @include "swarm/sweep"
local node, memory = ARGV[1], tonumber(ARGV[2])
local at, newer = open_swarm(KEYS[1], KEYS[2])

if newer then
  return { "incompatible", newer }
end
local scores = redis.call("ZMSCORE", at.probes, "p:" .. node, "c:" .. node)
local ends = tonumber(scores[1])
if scores[2] then
  return { "condemned", 0, sweep_nodes(at, memory) }
elseif not ends then
  return { "unknown" }
elseif at.ms < ends then
  return { "alive", ends - at.ms }
end
condemn(at, node, member_read(redis.call("HGET", at.state, "n:" .. node)), ends)
set_expiry(at, memory)
return { "condemned", 1, sweep_nodes(at, memory) }
