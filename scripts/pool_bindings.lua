--[[
pool_bindings: one binding, or some of them, in no order.
KEYS[1] state (HASH v -> values)
KEYS[2] items (HASH i:resource -> item)
KEYS[3] bindings (HASH b:name -> end, resource)
ARGV[1] name of the binding ("" = a page of all)    ARGV[2] cursor (0 to begin)    ARGV[3] about how many
RETURNS {"page", cursor, ...} | {"incompatible", format}
REPLAY reads only    COST O(page)
]]
-- For each binding three fields follow: its name, the resource, and the
-- milliseconds left (-1 = no end). One that has ended, or whose resource is not in
-- the pool, is left out.
--- @include "state/now"
--- @include "state/score"
--- @include "state/number"
--- @include "pool/binding"
--- @include "pool/item"
local at = { ms = now(redis.call("TIME")), items = KEYS[2], bindings = KEYS[3] }
local format = number_newer(unpack(redis.call("HMGET", KEYS[1], "v", "fmt")))
if format then
  return { "incompatible", format }
end
local names, cursor = { ARGV[1] }, "0"
if ARGV[1] == "" then
  local page = redis.call("HSCAN", at.bindings, ARGV[2], "MATCH", "b*", "COUNT", ARGV[3])
  names, cursor = {}, page[1]
  for n = 1, #page[2], 2 do
    names[#names + 1] = string.sub(page[2][n], 2)
  end
end
local reply = { "page", cursor }
for _, name in ipairs(names) do
  local key, ends = binding_of(at, name)
  local i = key and item_read(at, key)
  if item_stays(at, i) then
    reply[#reply + 1], reply[#reply + 2] = name, key
    reply[#reply + 1] = ends == score_forever and -1 or ends - at.ms
  end
end
return reply
