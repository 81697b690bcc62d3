--[[
claim_waiters: some of those who wait, in the order of the line.
KEYS[1] state (HASH v -> values, c:claim -> record; STRING see state/thin)
KEYS[2] line (ZSET place-claim, h:, t:claim, - -> score, see state/score)
ARGV[1] where the last one stands that was seen ("" to begin)    ARGV[2] its claim    ARGV[3] how many
RETURNS {"page", now_ms, ...} | {"incompatible", format}
REPLAY reads only    COST O(log n squared + page)
]]
-- For each waiter five fields follow: the claim, where it stands, see line/place, the milliseconds
-- until its liveness deadline, the record, and until when it waits for one resource and for which,
-- see pool/lane, empty for those in line, who come first. A page counts dead ones too, as a claim with an
-- empty record.
--- @include "state/fetch"
--- @include "state/now"
--- @include "state/number"
--- @include "state/thin"
--- @include "state/score"
--- @include "state/int"
--- @include "state/record"
--- @include "line/place"
local time, kept = fetch(KEYS, nil, "fmt")
local ms = now(time)
local st, newer = nil, number_newer(kept[1], kept[3])
if kept.thin then
  st, newer = thin_open(KEYS[1], kept.thin, ms)
end
if newer then
  return { "incompatible", newer }
elseif st or not kept[1] then
  return { "page", ms }
end
local reply = { "page", ms }
-- apart returns what else is known of those on a page who wait for one resource.
local function apart(page)
  local members = { "q:" }
  for i = 1, #page, 2 do
    local claim = page[i + 1] + 0 > score_last_lane and select(2, string.match(page[i], place_member))
    members[(i + 1) / 2] = "q:" .. (claim or "")
  end
  return redis.call("HMGET", KEYS[1], unpack(members))
end
-- The page begins behind the last claim that was seen. That may have left meanwhile, so the rank
-- where it would stand in its lane is searched for.
local lane, last = string.match(ARGV[1], place_telling)
local from = lane and redis.call("ZCOUNT", KEYS[2], "0", "(" .. lane) or 0
local to = lane and redis.call("ZCOUNT", KEYS[2], "0", lane) or 0
while from < to do
  local middle = math.floor((from + to) / 2)
  local place, claim = string.match(redis.call("ZRANGE", KEYS[2], int(middle), int(middle))[1], place_member)
  if place < last or place == last and claim <= ARGV[2] then
    from = middle + 1
  else
    to = middle
  end
end
local page = redis.call("ZRANGE", KEYS[2], int(from), int(from + tonumber(ARGV[3]) - 1), "WITHSCORES")
local fields = { "c:" }
for i = 1, #page, 2 do
  fields[(i + 1) / 2] = "c:" .. (select(2, string.match(page[i], place_member)) or "")
end
local resources = page[2] and page[#page] + 0 > score_last_lane and apart(page) or {}
for n, text in ipairs(redis.call("HMGET", KEYS[1], unpack(fields))) do
  local place, claim = string.match(page[2 * n - 1] or "", place_member)
  if not claim then
    break
  end
  local _, heard, wait = string.match(text or "", record_lives)
  local left = heard and heard + wait - ms or 0
  reply[5 * n - 2], reply[5 * n - 1] = claim, string.format(place_told, page[2 * n], place)
  reply[5 * n], reply[5 * n + 1] = left > 0 and left or 0, left > 0 and text or ""
  reply[5 * n + 2] = resources[n] or ""
end
return reply
