--[[
swarm_leave: a node goes, and nobody is to flush what it holds.
KEYS[1] state (HASH fmt, n:node -> record, t:node -> run, see swarm/open)
KEYS[2] probes (ZSET p:, c:, t:node -> score, see swarm/open)
ARGV[1] node    ARGV[2] run that ends    ARGV[3] tombstone (ms, 0 = none)    ARGV[4] memory (ms)
RETURNS {"left"} | {"condemned"} | {"incompatible", format}
REPLAY a run that has left stays out; a later run of the node stays in    COST O(log n)
]]
local node, run, stays, memory = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
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
local scores = redis.call("ZMSCORE", at.probes, "p:" .. node, "c:" .. node)
local function member_read(text)
  local run, ends, limit, label = string.match(text or "", "^(%d+) (%d+) (%d+) (.*)$")
  return run and { run = run, ends = ends, limit = limit, label = label }
end
local m, ends = member_read(redis.call("HGET", at.state, "n:" .. node)), tonumber(scores[1])
local function set_expiry(at, memory)
  local ends = math.ceil((at.ms + memory) / 1000) * 1000 + 60000
  redis.call("PEXPIREAT", at.state, ends)
  redis.call("PEXPIREAT", at.probes, ends)
end
if scores[2] then
  return { "condemned" }
elseif m and tonumber(m.run) > tonumber(run) then
  return { "left" }
elseif ends and at.ms >= ends then
local function condemn(at, node, m, ends)
  local last = redis.call("ZREVRANGEBYSCORE", at.probes, at.left - 1, at.condemned, "WITHSCORES", "LIMIT", 0, 1)
  local score = math.max(at.condemned + at.ms, (tonumber(last[2]) or 0) + 1)
  redis.call("ZREM", at.probes, "p:" .. node)
  redis.call("ZADD", at.probes, score, "c:" .. node)
  m = m or { run = "0", limit = "0", label = "" }
local function member_write(run, ends, limit, label)
  return run .. " " .. ends .. " " .. limit .. " " .. label
end
  local text = member_write(m.run, (string.format("%d", (ends))), m.limit, m.label)
  redis.call("HSET", at.state, "fmt", 2, "n:" .. node, text)
end
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
  redis.call("UNLINK", at.state)
end
return { "left" }
