--[[
claim_stats: count what is held, who waits and what has expired.
KEYS[1] state (HASH field -> number, c:claim -> record)
KEYS[2] line (ZSET h:, a:, q:, t:claim -> score, see state/band)
ARGV[1] so many expired holds are weighed
RETURNS {"stats", capacity, held, holders, waiting, expired} | {"incompatible", format}
REPLAY reads only    COST O(log n) + so many expired holds
]]
-- A hold or a waiting claim whose deadline has passed counts as expired, swept or not.
--- @include "state/fetch"
--- @include "state/now"
--- @include "state/load"
--- @include "state/band"
--- @include "state/int"
--- @include "state/record"
local time, kept = fetch(KEYS[1])
local line, ms = KEYS[2], now(time)
local st, newer = load(kept)
if newer then
  return { "incompatible", newer }
end
local function count(from, to)
  return redis.call("ZCOUNT", line, int(from), int(to))
end
local over, holders = count(0, ms), count(ms + 1, band_forever)
local held = holders > 0 and st.used or 0
if over > 0 and held > holders + over then -- not all weigh 1
  local fields = {}
  for n, member in ipairs(redis.call("ZRANGEBYSCORE", line, "0", int(ms), "LIMIT", "0", ARGV[1])) do
    fields[n] = "c:" .. string.sub(member, 3)
  end
  held = held - (over - #fields)
  for _, text in ipairs(redis.call("HMGET", KEYS[1], unpack(fields))) do
    local r = text and record_read(text)
    held = held - (r and r.weight or 0)
  end
elseif over > 0 and holders > 0 then
  held = holders
end
return {
  "stats", st.cap, held, holders, count(band_alive + ms + 1, band_queue - 1),
  over + count(band_alive, band_alive + ms),
}
