--[[
swarm_leave: a node goes, and nobody is to flush what it holds.
KEYS[1] state (HASH fmt, n:node -> record, t:node -> run, see swarm/open)
KEYS[2] probes (ZSET p:, c:, t:node -> score, see swarm/open)
ARGV[1] node    ARGV[2] run that ends    ARGV[3] tombstone (ms, 0 = none)    ARGV[4] memory (ms)
RETURNS {"left"} | {"condemned"} | {"incompatible", format}
REPLAY a run that has left stays out; a later run of the node stays in    COST O(log n)
]]
-- With the tombstone, a probe of this run that comes later counts nothing. A node
-- whose limit has passed cannot leave any more: it is condemned.
--- @include "swarm/open"
--- @include "swarm/member"
--- @include "swarm/expiry"
--- @include "swarm/condemn"
local node, run, stays, memory = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local at, newer = open_swarm(KEYS[1], KEYS[2])

if newer then
  return { "incompatible", newer }
end
local scores = redis.call("ZMSCORE", at.probes, "p:" .. node, "c:" .. node)
local m, ends = member_read(redis.call("HGET", at.state, "n:" .. node)), tonumber(scores[1])
if scores[2] then
  return { "condemned" }
elseif m and tonumber(m.run) > tonumber(run) then
  return { "left" }
elseif ends and at.ms >= ends then
  condemn(at, node, m, ends)
  set_expiry(at, memory)
  return { "condemned" }
end
if m or ends then
  redis.call("ZREM", at.probes, "p:" .. node)
  redis.call("HDEL", at.state, "n:" .. node)
end
if stays > 0 then
  redis.call("HSET", at.state, "fmt", 2, "t:" .. node, run)
  redis.call("ZADD", at.probes, at.left + at.ms + stays, "t:" .. node)
  set_expiry(at, memory)
elseif redis.call("EXISTS", at.probes) == 0 and redis.call("EXISTS", at.state) == 1 then
  redis.call("UNLINK", at.state) -- it was the last one
end
return { "left" }
