--- @include "state/values"
--- @include "line/dead"
-- fast_patrol looks as patrol does. It returns the values from look on, or nil where it has found a
-- dead claim.
local function fast_patrol(keys, waiting, rest, ms)
  local look, others = string.match(rest, values_look)
  local to = look ~= "0" and math.min(look, waiting) or waiting
  local from = math.max(to - 8, 0)
  if find_dead(keys[1], keys[2], from, to, ms)[1] then
    return nil
  end
  return values_gap .. string.format("%d", from) .. others
end
