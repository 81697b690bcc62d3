--[[
waits_note: note names that somebody waits for.
KEYS[1] names (ZSET kind:name -> until when that is believed, ms)
ARGV[1] for how long (ms, at most 24 h)
ARGV[2...] x1: member
RETURNS {"noted"}
REPLAY notes again; never believed for less long    COST O(log n) a member + at most 100 dropped
]]
local ahead = 90000000
local function now(t)
  local seconds, micros = t[1] + 0, t[2] + 0
  return seconds * 1000 + (micros - micros % 1000) / 1000, seconds * 1000000 + micros
end
local key, ms = KEYS[1], now(redis.call("TIME"))
local entries, ends = {}, (string.format("%d", (ms + tonumber(ARGV[1]))))
for n = 2, #ARGV do
  entries[#entries + 1], entries[#entries + 2] = ends, ARGV[n]
end
redis.call("ZADD", key, "GT", unpack(entries))
local over = redis.call("ZRANGEBYSCORE", key, "0", (string.format("%d", (ms))), "LIMIT", "0", "100")
local far = redis.call("ZRANGEBYSCORE", key, (string.format("%d", (ms + ahead))), "+inf", "LIMIT", "0", (string.format("%d", (100 - #over))))
if over[1] then
  redis.call("ZREM", key, unpack(over))
end
if far[1] then
  redis.call("ZREM", key, unpack(far))
  redis.call("ZADD", key, "GT", unpack(entries))
end
redis.call("PEXPIREAT", key, (string.format("%d", (tonumber(redis.call("ZRANGE", key, "-1", "-1", "WITHSCORES")[2])))))
return { "noted" }
