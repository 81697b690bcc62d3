--[[
claim_waiters: some of those who wait, in the order of the line.
KEYS[1] state (HASH field -> number, c:claim -> record)
KEYS[2] line (ZSET h:, a:, q:, t:claim -> score, see lib/bands)
ARGV[1] place to begin at    ARGV[2] how many
RETURNS {"page", now_ms, ...} | {"incompatible", format}
REPLAY reads only    COST O(log n + page)
]]
local function now(t)
  local seconds, micros = tonumber(t[1]), tonumber(t[2])
  return seconds * 1000 + (micros - micros % 1000) / 1000, seconds * 1000000 + micros
end
local band_width = 17592186044416
local all_bands = {
  forever = band_width - 1,
  alive = band_width,
  queue = 2 * band_width,
  queue_end = 258 * band_width - 1,
  tomb = 260 * band_width,
  rest = 262 * band_width,
  expiry = 264 * band_width,
  bind = 266 * band_width,
  width = band_width,
}
local function bands()
  return all_bands
end
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

