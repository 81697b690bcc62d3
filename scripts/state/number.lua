--- @include "state/feature"
--- @include "state/values"
-- number_newer is the number of a fat name if these scripts do not know it, nil for others.
local function number_newer(state)
  local kept = redis.call("HMGET", state, "v", "fmt")
  local number = tonumber(string.match(kept[1] or kept[2] or "", values_number) or nil)
  return number and (number < feature_first or number > feature_newest) and number or nil
end
