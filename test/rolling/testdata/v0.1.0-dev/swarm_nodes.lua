--[[
swarm_nodes: some of the nodes of a swarm, in no order.
KEYS[1] state (HASH fmt, n:node -> record, t:node -> run, see lib/watch)
KEYS[2] probes (ZSET p:, c:, t:node -> score, see lib/watch)
ARGV[1] cursor (0 to begin)    ARGV[2] about how many
RETURNS {"page", cursor, now_ms, ...} | {"incompatible", format}
REPLAY reads only    COST O(page)
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
local at, newer = watch(KEYS[1], KEYS[2])
if newer then
  return { "incompatible", newer }
end
local page = redis.call("HSCAN", at.state, ARGV[1], "MATCH", "n:*", "COUNT", ARGV[2])
local reply = { "page", page[1], at.ms }
for i = 1, #page[2], 2 do
  local node, m = string.sub(page[2][i], 3), member(page[2][i + 1])
  local scores = redis.call("ZMSCORE", at.probes, "p:" .. node, "c:" .. node)
  local ends, condemned = tonumber(scores[1]), tonumber(scores[2])
  if m and (ends or condemned) then
    reply[#reply + 1], reply[#reply + 2] = node, m.label
    reply[#reply + 1], reply[#reply + 2] = ends or m.ends, m.limit
    reply[#reply + 1] = condemned and condemned - at.condemned or 0
  end
end
return reply

