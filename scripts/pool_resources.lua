--[[
pool_resources: what is known of given resources, of a page of all, in no order, or of a page of the free list.
KEYS[1] state (HASH v -> values, c:claim -> record, r:claim -> resource, s:resource -> settings)
KEYS[2] line (ZSET place-claim, h:, t:claim, e:, x:, d:resource, u:binding, - -> score, see state/score)
KEYS[3] items (HASH i:resource -> item)
KEYS[4] free (HASH n:, p:resource -> next, previous)
ARGV[1] cursor (0 to begin, "" = only those given, n or p = of the free list, from its head or from its tail)
ARGV[2] about how many
ARGV[3...] x1: resource
RETURNS {"page", cursor, now_ms, ...} | {"list", next, now_ms, first, size, ...} | {"incompatible", format}
REPLAY reads only    COST O(page), and O(1) a resource given
]]
-- For each resource the fields of pool/describe follow. Of the free list two resources are given: the
-- one to begin at, "" = anew, and the one before that. The reply has the one behind the page, "" at the
-- end; the one with which the list begins; how many are in it. See pool/page.
--- @include "state/now"
--- @include "state/number"
--- @include "pool/describe"
--- @include "pool/page"
local at = { ms = now(redis.call("TIME")), state = KEYS[1], line = KEYS[2], items = KEYS[3], free = KEYS[4] }
local format = number_newer(unpack(redis.call("HMGET", at.state, "v", "fmt")))
if format then
  return { "incompatible", format }
end
if ARGV[1] == "n" or ARGV[1] == "p" then
  local page, behind = page_of(at, ARGV[1], ARGV[3], ARGV[4], tonumber(ARGV[2]))
  local list = { "list", behind, at.ms, redis.call("HGET", at.free, ARGV[1]) or "",
    math.max(redis.call("HLEN", at.free) / 2 - 1, 0) }
  for _, key in ipairs(page) do
    describe(at, key, list)
  end
  return list
end
local reply = { "page", "0", at.ms }
if ARGV[1] ~= "" then
  local page = redis.call("HSCAN", at.items, ARGV[1], "MATCH", "i*", "COUNT", ARGV[2])
  reply[2] = page[1]
  for n = 1, #page[2], 2 do
    describe(at, string.sub(page[2][n], 2), reply, page[2][n + 1])
  end
end
for n = 3, #ARGV do
  describe(at, ARGV[n], reply)
end
return reply
