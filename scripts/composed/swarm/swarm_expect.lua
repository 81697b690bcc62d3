--[[
swarm_expect: nodes that hold without end, and that the swarm does not know, are to probe.
KEYS[1] state (HASH fmt, n:node -> record, t:node -> run, see swarm/open)
KEYS[2] probes (ZSET p:, c:, t:node -> score, see swarm/open)
ARGV[1] memory (ms)
ARGV[2...] x3: node, its own zombie limit (ms), its label
RETURNS {"expected", entered} | {"incompatible", format}
REPLAY a node that is known stays as it is    COST O(log n) a node
]]
local memory, entered = tonumber(ARGV[1]), 0
local function open_swarm(state, probes)
local function now(t)
  local seconds, micros = t[1] + 0, t[2] + 0
  return seconds * 1000 + (micros - micros % 1000) / 1000, seconds * 1000000 + micros
end
  local at = { state = state, probes = probes, ms = now(redis.call("TIME")), condemned = (10000000000000) }
  at.left = 2 * (10000000000000)
  local format = tonumber(redis.call("HGET", state, "fmt")) or 0
  return at, format ~= 0 and format ~= 2 and format or nil
end
local at, newer = open_swarm(KEYS[1], KEYS[2])
if newer then
  return { "incompatible", newer }
end
for i = 2, #ARGV, 3 do
  local node, limit, label = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local scores = redis.call("ZMSCORE", at.probes, "p:" .. node, "c:" .. node)
  if not scores[1] and not scores[2] then
    redis.call("HSET", at.state, "fmt", 2, "n:" .. node, (("0") .. " " .. ("0") .. " " .. (limit) .. " " .. (label)))
    redis.call("ZADD", at.probes, at.ms + tonumber(limit), "p:" .. node)
    entered = entered + 1
  end
end
if entered > 0 then
local function set_expiry(at, memory)
  local ends = math.ceil((at.ms + memory) / 1000) * 1000 + 60000
  redis.call("PEXPIREAT", at.state, ends)
  redis.call("PEXPIREAT", at.probes, ends)
end
  set_expiry(at, memory)
end
return { "expected", entered }
