--[[
pool_settings: what is stored of the settings of a pool.
KEYS[1] state (HASH v -> values, c:claim -> record, r:claim -> resource, s:resource -> settings)
RETURNS {"settings", settings} | {"incompatible", format}
REPLAY reads only    COST O(1)
]]
-- For the settings see pool/settings.
--- @include "state/number"
--- @include "pool/counts"
local values, former, text = unpack(redis.call("HMGET", KEYS[1], "v", "fmt", "pool"))
local format = number_newer(values, former)
local p = not format and pool_counts(text or nil)
if not p then
  return { "incompatible", format or 0 }
end
return { "settings", p.settings }
