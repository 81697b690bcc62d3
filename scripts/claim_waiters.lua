--[[
claim_waiters: some of those who wait, in the order of the line.
KEYS[1] state (HASH field -> number, c:claim -> record)
KEYS[2] line (ZSET h:, a:, q:, t:claim -> score, see lib/bands)
ARGV[1] place to begin at    ARGV[2] how many
RETURNS {"page", now_ms, ...} | {"incompatible", format}
REPLAY reads only    COST O(log n + page)
]]
-- For each live waiter four fields follow: the claim, its place, the
-- milliseconds until its liveness deadline and the record. A page counts dead
-- ones too, as a claim with an empty record.
--- @include "lib/now"
--- @include "lib/bands"
local ms, band = now(redis.call("TIME")), bands()
local format = tonumber(redis.call("HGET", KEYS[1], "fmt")) or 0
if format > 1 then
  return { "incompatible", format }
end
local page = redis.call("ZRANGEBYSCORE", KEYS[2], band.queue + tonumber(ARGV[1]), band.queue_end,
  "WITHSCORES", "LIMIT", 0, ARGV[2])
local reply = { "page", ms }
for i = 1, #page, 2 do
  local claim = string.sub(page[i], 3)
  local alive = (tonumber(redis.call("ZSCORE", KEYS[2], "a:" .. claim)) or 0) - band.alive
  reply[#reply + 1] = claim
  reply[#reply + 1] = tonumber(page[i + 1]) - band.queue
  reply[#reply + 1] = math.max(alive - ms, 0)
  reply[#reply + 1] = alive > ms and redis.call("HGET", KEYS[1], "c:" .. claim) or ""
end
return reply
