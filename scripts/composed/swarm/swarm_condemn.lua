--[[
swarm_condemn: find a node dead, if it has not probed within its own limit.
KEYS[1] state (HASH fmt, n:node -> record, t:node -> run, see swarm/open)
KEYS[2] probes (ZSET p:, c:, t:node -> score, see swarm/open)
ARGV[1] node    ARGV[2] memory (ms)
RETURNS {"condemned", fresh, more} | {"alive", left_ms} | {"unknown"} | {"incompatible", format}
REPLAY who is condemned stays so; fresh is 1 for the call that did it    COST O(log n) + at most 100 drops
]]
local node, memory = ARGV[1], tonumber(ARGV[2])
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
local ends = tonumber(scores[1])
local function sweep_nodes(at, memory)
  local members = redis.call("ZRANGEBYSCORE", at.probes, at.condemned, at.condemned + at.ms - memory, "LIMIT", 0, 100)
  if #members < 100 then
    local stale = redis.call("ZRANGEBYSCORE", at.probes, at.left, at.left + at.ms, "LIMIT", 0, 100 - #members)
    for _, old in ipairs(stale) do
      members[#members + 1] = old
    end
  end
  if not members[1] then
    return 0
  end
  local fields = {}
  for i, old in ipairs(members) do
    fields[i] = (string.sub(old, 1, 1) == "c" and "n" or "t") .. string.sub(old, 2)
  end
  redis.call("ZREM", at.probes, unpack(members))
  redis.call("HDEL", at.state, unpack(fields))
  return #members >= 100 and 1 or 0
end
if scores[2] then
  return { "condemned", 0, sweep_nodes(at, memory) }
elseif not ends then
  return { "unknown" }
elseif at.ms < ends then
  return { "alive", ends - at.ms }
end
local function member_read(text)
  local run, ends, limit, label = string.match(text or "", "^(%d+) (%d+) (%d+) (.*)$")
  return run and { run = run, ends = ends, limit = limit, label = label }
end
local function set_expiry(at, memory)
  local ends = math.ceil((at.ms + memory) / 1000) * 1000 + 60000
  redis.call("PEXPIREAT", at.state, ends)
  redis.call("PEXPIREAT", at.probes, ends)
end
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
condemn(at, node, member_read(redis.call("HGET", at.state, "n:" .. node)), ends)
set_expiry(at, memory)
return { "condemned", 1, sweep_nodes(at, memory) }
