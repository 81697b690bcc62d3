--[[
pool_bind: bind a name to a resource, or end a binding.
KEYS[1] state (HASH v -> values, c:claim -> record, r:claim -> resource, s:resource -> settings)
KEYS[2] line (ZSET place-claim, h:, t:claim, e:, x:, d:resource, u:binding, - -> score, see state/score)
KEYS[3] items (HASH i:resource -> item)
KEYS[4] free (ZSET resource -> its turn)
KEYS[5] bindings (HASH b:name -> end, resource)
ARGV[1] linger (ms)    ARGV[2] channel prefix    ARGV[3] name
ARGV[4] name of the binding    ARGV[5] resource ("" = end it)    ARGV[6] for how long (ms, 0 = forever,
  - = as the settings say)
RETURNS {"bound"} | {"unbound", ended} | {"absent"} | {"incompatible", format}
REPLAY a binding is counted from now    COST O(log n)
]]
--- @include "kind/pool"
--- @include "state/save"
--- @include "pool/item"
--- @include "pool/binding"
--- @include "pool/settings"
local bind_name, key = ARGV[4], ARGV[5]
local at, st = kind_open(KEYS, ARGV[1], ARGV[2], ARGV[3])

if at.newer then
  return { "incompatible", at.newer }
elseif key == "" then
  return { "unbound", binding_end(at, bind_name) }
end
local i = st.form and item_read(at, key)
if not item_stays(at, i) then
  return { "absent" }
end
binding_begin(at, bind_name, key, tonumber(ARGV[6]) or settings_binds(at, st, key, i), 0)
save(at, st)
return { "bound" }
