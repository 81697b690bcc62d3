--- @include "lib/item"
--- @include "lib/settle"
--- @include "lib/comesback"
--- @include "lib/damaged"
-- giveback ends what a claim had of a resource; see comesback for ends and reason. It
-- returns whether the resource is still in the pool. w is what the claim wants, nil where
-- its record is gone.
local function giveback(at, st, claim, key, w, ends, reason)
  redis.call("HDEL", at.state, "r:" .. claim)
  local i, bad = item(at, key)
  if bad then
    damaged(at, st, key, not (w and w.shared))
    return true
  elseif not i then
    return false
  end
  if comesback(at, i, claim, ends, reason) then -- else it was shared, and has kept nothing from anybody
    settle(at, st, key, i)
  end
  return not i.leaving
end
