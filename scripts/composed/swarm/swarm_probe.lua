--[[
swarm_probe: a node says that it lives.
KEYS[1] state (HASH fmt, n:node -> record, t:node -> run, see swarm/open)
KEYS[2] probes (ZSET p:, c:, t:node -> score, see swarm/open)
ARGV[1] node    ARGV[2] run, which rises with each start of the node    ARGV[3] label
ARGV[4] the node's own zombie limit (ms)    ARGV[5] memory (ms)
RETURNS {"probed", more, known} | {"condemned", more, known} | {"left", more, known} | {"incompatible", format}
REPLAY a probe counts from now; one of a run that has left counts nothing    COST O(log n) + at most 100 drops
]]
local node, run, limit, memory = ARGV[1], ARGV[2], tonumber(ARGV[4]), tonumber(ARGV[5])
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
local known = redis.call("HMGET", at.state, "n:" .. node, "t:" .. node)
local scores = redis.call("ZMSCORE", at.probes, "p:" .. node, "c:" .. node)
local function member_read(text)
  local run, ends, limit, label = string.match(text or "", "^(%d+) (%d+) (%d+) (.*)$")
  return run and { run = run, ends = ends, limit = limit, label = label }
end
local m, ends = member_read(known[1]), tonumber(scores[1])
local ended = math.max(m and tonumber(m.run) - 1 or 0, tonumber(known[2]) or 0)
local status = "probed"
local function set_expiry(at, memory)
  local ends = math.ceil((at.ms + memory) / 1000) * 1000 + 60000
  redis.call("PEXPIREAT", at.state, ends)
  redis.call("PEXPIREAT", at.probes, ends)
end
if scores[2] then
  status = "condemned"
elseif tonumber(run) <= ended then
  status = "left"
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
  status = "condemned"
  condemn(at, node, m, ends)
  set_expiry(at, memory)
else
  local text = ((run) .. " " .. ("0") .. " " .. (ARGV[4]) .. " " .. (ARGV[3]))
  if ends then
    set_expiry(at, memory)
  end
  if text ~= known[1] then
    redis.call("HSET", at.state, "fmt", 2, "n:" .. node, text)
  end
  redis.call("ZADD", at.probes, at.ms + limit, "p:" .. node)
  if not ends or text ~= known[1] then
    set_expiry(at, memory)
  end
end
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
return { status, sweep_nodes(at, memory), ends and 1 or 0 }
