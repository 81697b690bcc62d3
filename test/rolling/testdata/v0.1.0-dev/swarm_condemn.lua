--[[
swarm_condemn: find a node dead, if it has not probed within its own limit.
KEYS[1] state (HASH fmt, n:node -> record, t:node -> run, see lib/watch)
KEYS[2] probes (ZSET p:, c:, t:node -> score, see lib/watch)
ARGV[1] node    ARGV[2] memory (ms)
RETURNS {"condemned", fresh, more} | {"alive", left_ms} | {"unknown"} | {"incompatible", format}
REPLAY who is condemned stays so; fresh is 1 for the call that did it    COST O(log n) + at most 100 drops
]]
local function now(t)
  local seconds, micros = tonumber(t[1]), tonumber(t[2])
  return seconds * 1000 + (micros - micros % 1000) / 1000, seconds * 1000000 + micros
end
local function watch(state, probes)
  local width = 17592186044416
  local at = { state = state, probes = probes, ms = now(redis.call("TIME")), condemned = width, left = 2 * width }
  local format = tonumber(redis.call("HGET", state, "fmt")) or 0
  return at, format > 1 and format or nil
end
local function member(text)
  local run, ends, limit, label = string.match(text or "", "^(%d+) (%d+) (%d+) (.*)$")
  return run and { run = run, ends = ends, limit = limit, label = label }
end
local function endure(at, memory)
  local ends = math.ceil((at.ms + memory) / 1000) * 1000 + 60000
  redis.call("PEXPIREAT", at.state, ends)
  redis.call("PEXPIREAT", at.probes, ends)
end
local function int(x)
  return string.format("%d", x)
end
local function condemn(at, node, m, ends)
  local last = redis.call("ZREVRANGEBYSCORE", at.probes, at.left - 1, at.condemned, "WITHSCORES", "LIMIT", 0, 1)
  local score = math.max(at.condemned + at.ms, (tonumber(last[2]) or 0) + 1)
  redis.call("ZREM", at.probes, "p:" .. node)
  redis.call("ZADD", at.probes, score, "c:" .. node)
  m = m or { run = "0", limit = "0", label = "" }
  local text = m.run .. " " .. int(ends) .. " " .. m.limit .. " " .. m.label
  redis.call("HSET", at.state, "fmt", 1, "n:" .. node, text)
end
local function fade(at, memory)
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
local node, memory = ARGV[1], tonumber(ARGV[2])
local at, newer = watch(KEYS[1], KEYS[2])
if newer then
  return { "incompatible", newer }
end
local scores = redis.call("ZMSCORE", at.probes, "p:" .. node, "c:" .. node)
local ends = tonumber(scores[1])
if scores[2] then
  return { "condemned", 0, fade(at, memory) }
elseif not ends then
  return { "unknown" }
elseif at.ms < ends then
  return { "alive", ends - at.ms }
end
condemn(at, node, member(redis.call("HGET", at.state, "n:" .. node)), ends)
endure(at, memory)
return { "condemned", 1, fade(at, memory) }

