--[[
claim_holders: some of the holds, in no order.
KEYS[1] state (HASH field -> number, c:claim -> record)
KEYS[2] line (ZSET h:, a:, q:, t:claim -> score, see state/band)
ARGV[1] cursor (0 to begin)    ARGV[2] about how many
RETURNS {"page", cursor, now_ms, ...} | {"incompatible", format}
REPLAY reads only    COST O(page)
]]
-- The cursor is 0 when all have been seen. For each hold four fields follow:
-- the claim, the milliseconds left (-1 = no end), the record and, in a pool, the
-- resource, else "".
--- @include "state/now"
--- @include "state/band"
--- @include "state/feature"
local ms = now(redis.call("TIME"))
local format = tonumber(redis.call("HGET", KEYS[1], "fmt")) or 0
if format > feature_newest then
  return { "incompatible", format }
end
local page = redis.call("HSCAN", KEYS[1], ARGV[1], "MATCH", "c:*", "COUNT", ARGV[2])
local reply = { "page", page[1], ms }
for i = 1, #page[2], 2 do
  local claim = string.sub(page[2][i], 3)
  local deadline = tonumber(redis.call("ZSCORE", KEYS[2], "h:" .. claim))
  if deadline and deadline > ms then
    reply[#reply + 1] = claim
    reply[#reply + 1] = deadline == band_forever and -1 or deadline - ms
    reply[#reply + 1] = page[2][i + 1]
    reply[#reply + 1] = redis.call("HGET", KEYS[1], "r:" .. claim) or ""
  end
end
return reply
