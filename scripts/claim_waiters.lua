--[[
claim_waiters: some of those who wait, in the order of the line.
KEYS[1] state (HASH field -> number, c:claim -> record)
KEYS[2] line (ZSET h:, a:, q:, t:claim -> score, see state/band)
ARGV[1] place to begin at    ARGV[2] how many
RETURNS {"page", now_ms, ...} | {"incompatible", format}
REPLAY reads only    COST O(log n + page)
]]
-- For each live waiter four fields follow: the claim, its place, the
-- milliseconds until its liveness deadline and the record. A page counts dead
-- ones too, as a claim with an empty record.
--- @include "state/now"
--- @include "state/band"
--- @include "state/feature"
local ms = now(redis.call("TIME"))
local format = tonumber(redis.call("HGET", KEYS[1], "fmt")) or 0
if format > feature_newest then
  return { "incompatible", format }
end
local page = redis.call("ZRANGEBYSCORE", KEYS[2], band_queue + tonumber(ARGV[1]), band_queue_end,
  "WITHSCORES", "LIMIT", 0, ARGV[2])
local reply = { "page", ms }
for i = 1, #page, 2 do
  local claim = string.sub(page[i], 3)
  local alive = (tonumber(redis.call("ZSCORE", KEYS[2], "a:" .. claim)) or 0) - band_alive
  reply[#reply + 1] = claim
  reply[#reply + 1] = tonumber(page[i + 1]) - band_queue
  reply[#reply + 1] = math.max(alive - ms, 0)
  reply[#reply + 1] = alive > ms and redis.call("HGET", KEYS[1], "c:" .. claim) or ""
end
return reply
