--[[
claim_holders: some of the holds, in no order.
KEYS[1] state (HASH v -> values, c:claim -> record; STRING see state/thin)
KEYS[2] line (ZSET place-claim, h:, t:claim, - -> score, see state/band)
ARGV[1] cursor (0 to begin)    ARGV[2] about how many
RETURNS {"page", cursor, now_ms, ...} | {"incompatible", format}
REPLAY reads only    COST O(page)
]]
-- The cursor is 0 when all have been seen. For each hold four fields follow:
-- the claim, the milliseconds left (-1 = no end), the record and, in a pool, the
-- resource, else "". A name that has become thin in the midst of it has no more than one hold.
--- @include "state/fetch"
--- @include "state/open"
--- @include "line/hold"
--- @include "line/span"
local time, kept, top = fetch(KEYS)
local at, st = open(KEYS, "0", "", "", nil, time, kept, top)
if at.newer then
  return { "incompatible", at.newer }
end
local fields, cursor = {}, "0"
if st.thin then
  fields = { "c:" .. st.thin.claim, st.thin.text }
elseif st.form ~= "thin" then
  local page = redis.call("HSCAN", at.state, ARGV[1], "MATCH", "c:*", "COUNT", ARGV[2])
  cursor, fields = page[1], page[2]
end
local reply = { "page", cursor, at.ms }
for i = 1, #fields, 2 do
  local claim = string.sub(fields[i], 3)
  local deadline, n = hold_ends(at, st, claim), #reply
  if deadline and deadline > at.ms then
    reply[n + 1], reply[n + 2], reply[n + 3] = claim, span(at, deadline), fields[i + 1]
    reply[n + 4] = not st.thin and redis.call("HGET", at.state, "r:" .. claim) or ""
  end
end
return reply
