--[[
waits_note: note names that somebody waits for.
KEYS[1] names (ZSET kind:name -> until when that is believed, ms)
ARGV[1] for how long (ms, at most 24 h)
ARGV[2...] x1: member
RETURNS {"noted"}
REPLAY notes again; never believed for less long    COST O(log n) a member + at most 100 dropped
]]
-- It begins with what grows: a full server refuses it, and nothing is lost but a hint.
--- @include "state/now"
--- @include "state/int"
local ahead = 90000000 -- no note reaches 25 h ahead: the clock was ahead when it was written
local key, ms = KEYS[1], now(redis.call("TIME"))
local entries, ends = {}, int(ms + tonumber(ARGV[1]))

for n = 2, #ARGV do
  entries[#entries + 1], entries[#entries + 2] = ends, ARGV[n]
end
redis.call("ZADD", key, "GT", unpack(entries))
local over = redis.call("ZRANGEBYSCORE", key, "0", int(ms), "LIMIT", "0", "100")
local far = redis.call("ZRANGEBYSCORE", key, int(ms + ahead), "+inf", "LIMIT", "0", int(100 - #over))
if over[1] then
  redis.call("ZREM", key, unpack(over))
end
if far[1] then
  redis.call("ZREM", key, unpack(far))
  redis.call("ZADD", key, "GT", unpack(entries)) -- they may have been among those
end
redis.call("PEXPIREAT", key, int(tonumber(redis.call("ZRANGE", key, "-1", "-1", "WITHSCORES")[2])))
return { "noted" }
