--[[
claim_stats: count what is held, who waits and what has expired.
KEYS[1] state (HASH v -> values, c:claim -> record; STRING see state/thin)
KEYS[2] line (ZSET place-claim, h:, t:claim, - -> score, see state/score)
ARGV[1] so many expired holds are weighed
RETURNS {"stats", capacity, held, holders, waiting, expired} | {"incompatible", format}
REPLAY reads only    COST O(log n) + so many expired holds
]]
-- A hold whose deadline has passed counts as expired, swept or not. Those who wait are counted
-- by their places: dead ones may be among them.
--- @include "state/fetch"
--- @include "state/open"
--- @include "state/score"
--- @include "state/int"
--- @include "state/record"
local time, kept, top = fetch(KEYS)
local at, st = open(KEYS, "0", "", "", nil, time, kept, top)
if at.newer then
  return { "incompatible", at.newer }
elseif st.form ~= "fat" then
  return { "stats", st.cap, st.used, st.used, 0, st.thin and 1 - st.used or 0 }
end
local function count(from, to)
  return redis.call("ZCOUNT", at.line, int(from), int(to))
end
local over, holders = count(score_hold, score_hold + at.ms), count(score_hold + at.ms + 1, score_hold + score_forever)
local held = holders > 0 and st.used or 0
if over > 0 and held > holders + over then -- not all weigh 1
  local fields = {}
  for n, member in ipairs(redis.call("ZRANGEBYSCORE", at.line, int(score_hold), int(score_hold + at.ms),
    "LIMIT", "0", ARGV[1])) do
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
return { "stats", st.cap, held, holders, count(0, score_last_lane), over }
