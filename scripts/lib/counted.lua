--- @include "lib/endless"
-- counted is 1 for a record that the state counts as forever, else 0: its hold
-- has no end, and is confirmed.
local function counted(r)
  return endless(r) and r.phase ~= "g" and r.phase ~= "w" and 1 or 0
end
