--[[
pool_resources: what is known of given resources, or of a page of all, in no order.
KEYS[1] state (HASH v -> values, c:claim -> record, r:claim -> resource)
KEYS[2] line (ZSET place-claim, h:, t:claim, e:, x:, d:resource, u:binding, - -> score, see state/score)
KEYS[3] items (HASH i:resource -> item)
ARGV[1] cursor (0 to begin, "" = only those given)    ARGV[2] about how many
ARGV[3...] x1: resource
RETURNS {"page", cursor, now_ms, ...} | {"incompatible", format}
REPLAY reads only    COST O(page), and O(1) a resource given
]]
-- For each resource the fields of pool/describe follow.
--- @include "state/now"
--- @include "state/number"
--- @include "pool/describe"
local at = { ms = now(redis.call("TIME")), state = KEYS[1], line = KEYS[2], items = KEYS[3] }
local format = number_newer(unpack(redis.call("HMGET", at.state, "v", "fmt")))
if format then
  return { "incompatible", format }
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
