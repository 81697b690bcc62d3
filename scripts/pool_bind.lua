--[[
pool_bind: bind a name to a resource, or end a binding.
KEYS[1] state (HASH field -> number, c:claim -> record, r:claim -> resource)
KEYS[2] line (ZSET h:, a:, q:, t:claim, e:, x:, d:resource, u:binding -> score, see lib/bands)
KEYS[3] items (HASH i:resource -> item)
KEYS[4] free (HASH n:, p:resource -> next, previous)
KEYS[5] bindings (HASH b:name -> end, resource)
ARGV[1] name of the binding    ARGV[2] resource ("" = end it)    ARGV[3] for how long (ms, 0 = forever)
ARGV[4] linger (ms)    ARGV[5] channel prefix    ARGV[6] name
RETURNS {"bound"} | {"unbound", ended} | {"absent"} | {"incompatible", format}
REPLAY a binding is counted from now    COST O(log n)
]]
--- @include "lib/pool"
--- @include "lib/item"
--- @include "lib/bind"
--- @include "lib/poolsave"
local bind_name, key = ARGV[1], ARGV[2]
local at, st, _, newer = pool(KEYS, ARGV[4], ARGV[5], ARGV[6])

if newer then
  return { "incompatible", newer }
elseif key == "" then
  local ended = redis.call("HDEL", at.bindings, "b" .. bind_name)
  redis.call("ZREM", at.line, "u:" .. bind_name)
  return { "unbound", ended }
end
local i = st.fmt > 0 and item(at, key)
if not i or i.leaving or i.expiry > 0 and i.expiry <= at.ms then
  return { "absent" }
end
bind(at, bind_name, key, tonumber(ARGV[3]), 0)
poolsave(at, st)
return { "bound" }
