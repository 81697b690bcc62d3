--[[
claim_waiters: some of those who wait, in the order of the line.
KEYS[1] state (HASH v -> values, c:claim -> record; STRING see state/thin)
KEYS[2] line (ZSET place-claim, h:, t:claim, - -> score, see state/band)
ARGV[1] where the last one stands that was seen ("" to begin)    ARGV[2] its claim    ARGV[3] how many
RETURNS {"page", now_ms, ...} | {"incompatible", format}
REPLAY reads only    COST O(log n squared + page)
]]
-- For each waiter four fields follow: the claim, where it stands, see line/place, the milliseconds
-- until its liveness deadline and the record. A page counts dead ones too, as a claim with an
-- empty record.
--- @include "state/fetch"
--- @include "state/open"
--- @include "state/int"
--- @include "state/record"
--- @include "line/place"
local time, kept, top = fetch(KEYS)
local at, st = open(KEYS, "0", "", "", nil, time, kept, top)
if at.newer then
  return { "incompatible", at.newer }
end
local reply = { "page", at.ms }
if st.form ~= "fat" then
  return reply
end
-- The page begins behind the last one, which may have left meanwhile: among those of its lane
-- the rank is looked for where it would stand.
local lane, last = string.match(ARGV[1], place_telling)
local from = lane and redis.call("ZCOUNT", at.line, "0", "(" .. lane) or 0
local to = lane and redis.call("ZCOUNT", at.line, "0", lane) or 0
while from < to do
  local middle = math.floor((from + to) / 2)
  local place, claim = string.match(redis.call("ZRANGE", at.line, int(middle), int(middle))[1], place_member)
  if place < last or place == last and claim <= ARGV[2] then
    from = middle + 1
  else
    to = middle
  end
end
local page = redis.call("ZRANGE", at.line, int(from), int(from + tonumber(ARGV[3]) - 1), "WITHSCORES")
for i = 1, #page, 2 do
  local place, claim = string.match(page[i], place_member)
  if not claim then
    break
  end
  local text, n = redis.call("HGET", at.state, "c:" .. claim), #reply
  local r = text and record_read(text)
  local alive = r and record_alive(r) > at.ms
  reply[n + 1], reply[n + 2] = claim, string.format(place_told, page[i + 1], place)
  reply[n + 3], reply[n + 4] = alive and record_alive(r) - at.ms or 0, alive and text or ""
end
return reply
