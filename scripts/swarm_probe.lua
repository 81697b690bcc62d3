--[[
swarm_probe: a node says that it lives.
KEYS[1] state (HASH fmt, n:node -> record, t:node -> run, see swarm/open)
KEYS[2] probes (ZSET p:, c:, t:node -> score, see swarm/open)
ARGV[1] node    ARGV[2] run, which rises with each start of the node    ARGV[3] label
ARGV[4] the node's own zombie limit (ms)    ARGV[5] memory (ms)
RETURNS {"probed", more, known} | {"condemned", more, known} | {"left", more, known} | {"incompatible", format}
REPLAY a probe counts from now; one of a run that has left counts nothing    COST O(log n) + at most 100 drops
]]
-- The limit is kept with the probe, and everybody goes by it. A probe that comes after
-- the last one's limit revives nobody: the node is condemned. known is 1 if the node was in the
-- swarm before; 0 for a node that has probed says that the server has lost it.
--- @include "swarm/open"
--- @include "swarm/member"
--- @include "swarm/expiry"
--- @include "swarm/condemn"
--- @include "swarm/sweep"
local node, run, limit, memory = ARGV[1], ARGV[2], tonumber(ARGV[4]), tonumber(ARGV[5])
local at, newer = open_swarm(KEYS[1], KEYS[2])

if newer then
  return { "incompatible", newer }
end
local known = redis.call("HMGET", at.state, "n:" .. node, "t:" .. node)
local scores = redis.call("ZMSCORE", at.probes, "p:" .. node, "c:" .. node)
local m, ends = member_read(known[1]), tonumber(scores[1])
local ended = math.max(m and tonumber(m.run) - 1 or 0, tonumber(known[2]) or 0)
local status = "probed"

if scores[2] then
  status = "condemned"
elseif tonumber(run) <= ended then
  status = "left"
elseif ends and at.ms >= ends then
  status = "condemned"
  condemn(at, node, m, ends)
  set_expiry(at, memory)
else
  local text = member_write(run, "0", ARGV[4], ARGV[3])
  if ends then
    set_expiry(at, memory) -- nodes live on on a full server
  end
  if text ~= known[1] then
    redis.call("HSET", at.state, "fmt", 2, "n:" .. node, text)
  end
  redis.call("ZADD", at.probes, at.ms + limit, "p:" .. node)
  if not ends or text ~= known[1] then
    set_expiry(at, memory) -- a key may be new
  end
end
return { status, sweep_nodes(at, memory), ends and 1 or 0 }
