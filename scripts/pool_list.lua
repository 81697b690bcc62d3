--[[
pool_list: a page of the list of free resources.
KEYS[1] state (HASH v -> values, c:claim -> record, r:claim -> resource, s:resource -> settings)
KEYS[2] free (HASH n:, p:resource -> next, previous)
ARGV[1] way (n = from the head, p = from the tail)    ARGV[2] how many
ARGV[3] resource to begin at ("" = anew)    ARGV[4] resource before that one
RETURNS {"list", next, first, size, ...} | {"incompatible", format}
REPLAY reads only    COST O(page)
]]
-- The reply has the resource behind the page, "" at the end; the one with which the list begins; how many are in
-- it; and the page, see pool/page.
--- @include "state/number"
--- @include "pool/page"
local format = number_newer(unpack(redis.call("HMGET", KEYS[1], "v", "fmt")))
if format then
  return { "incompatible", format }
end
local page, behind = page_of({ free = KEYS[2] }, ARGV[1], ARGV[3], ARGV[4], tonumber(ARGV[2]))
local first, size = redis.call("HGET", KEYS[2], ARGV[1]) or "", redis.call("HLEN", KEYS[2]) / 2 - 1
local reply = { "list", behind, first, math.max(size, 0) }
for _, key in ipairs(page) do
  reply[#reply + 1] = key
end
return reply
