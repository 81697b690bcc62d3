--- @include "state/feature"
--- @include "state/values"
-- number_newer is the number of a fat name if these scripts do not know it, nil for others; of
-- its state the field v is given, and the field fmt, which names had before there was a v.
local function number_newer(text, former)
  local number = tonumber(string.match(text or former or "", values_number) or nil)
  return number and (number < feature_first or number > feature_newest) and number or nil
end
