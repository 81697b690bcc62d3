--[[
pool_holds: which claims are on record as holders of given resources; a page of all claims.
KEYS[1] state (HASH v -> values, c:claim -> record, r:claim -> resource, s:resource -> settings)
ARGV[1] cursor (0 to begin)    ARGV[2] about how many
ARGV[3...] x1: resource
RETURNS {"page", cursor, ...} | {"incompatible", format}
REPLAY reads only    COST O(page)
]]
-- For each claim two fields follow: the resource, and the claim.
--- @include "state/number"
local format = number_newer(unpack(redis.call("HMGET", KEYS[1], "v", "fmt")))
if format then
  return { "incompatible", format }
end
local wanted = {}
for n = 3, #ARGV do
  wanted[ARGV[n]] = true
end
local page = redis.call("HSCAN", KEYS[1], ARGV[1], "MATCH", "r:*", "COUNT", ARGV[2])
local reply = { "page", page[1] }
for n = 1, #page[2], 2 do
  if wanted[page[2][n + 1]] then
    reply[#reply + 1], reply[#reply + 2] = page[2][n + 1], string.sub(page[2][n], 3)
  end
end
return reply
