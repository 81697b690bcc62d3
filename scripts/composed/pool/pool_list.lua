--[[
pool_list: a page of the list of free resources.
KEYS[1] state (HASH v -> values, c:claim -> record, r:claim -> resource, s:resource -> settings)
KEYS[2] free (HASH n:, p:resource -> next, previous)
ARGV[1] way (n = from the head, p = from the tail)    ARGV[2] how many
ARGV[3] resource to begin at ("" = anew)    ARGV[4] resource before that one
RETURNS {"list", next, first, size, ...} | {"incompatible", format}
REPLAY reads only    COST O(page)
]]
local function number_newer(text, former)
  local number = tonumber(string.match(text or former or "", ("^%d+")) or nil)
  return number and (number < (3) or number > (3)) and number or nil
end
local format = number_newer(unpack(redis.call("HMGET", KEYS[1], "v", "fmt")))
if format then
  return { "incompatible", format }
end
local function page_of(at, way, from, before, most)
  local page, key = {}, from
  if from == "" or redis.call("HGET", at.free, way .. before) ~= from then
    key = redis.call("HGET", at.free, way) or ""
  end
  while key ~= "" and #page < most do
    page[#page + 1] = key
    key = redis.call("HGET", at.free, way .. key) or ""
  end
  return page, key
end
local page, behind = page_of({ free = KEYS[2] }, ARGV[1], ARGV[3], ARGV[4], tonumber(ARGV[2]))
local first, size = redis.call("HGET", KEYS[2], ARGV[1]) or "", redis.call("HLEN", KEYS[2]) / 2 - 1
local reply = { "list", behind, first, math.max(size, 0) }
for _, key in ipairs(page) do
  reply[#reply + 1] = key
end
return reply
