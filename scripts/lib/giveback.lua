--- @include "lib/bands"
--- @include "lib/item"
--- @include "lib/settle"
--- @include "lib/damaged"
-- giveback ends what a claim had of a resource. The resource rests until ends (ms), and
-- for as long as somebody has asked for meanwhile; else it is free again, or leaves.
-- It returns whether it is still in the pool. The nearest end of a rest that a run has
-- begun is in at.sooner, for hasten. w is what the claim wants, nil where its record is gone.
local function giveback(at, st, claim, key, w, ends, reason)
  redis.call("HDEL", at.state, "r:" .. claim)
  local i, bad = item(at, key)
  if bad then
    damaged(at, st, key, not (w and w.shared))
    return true
  elseif not i then
    return false
  end
  local count = #i.claims
  for n = count, 1, -1 do
    if i.claims[n] == claim then
      table.remove(i.claims, n)
    end
  end
  if #i.claims == count then
    return not i.leaving -- shared: it has kept nothing from anybody
  end
  if i.pend > 0 then
    local until_then = at.ms + i.pend
    if until_then > ends then
      ends, reason = until_then, i.reason
    end
    i.pend = 0
  end
  if i.expiry > 0 and i.expiry <= at.ms then
    i.leaving = true
  elseif ends > at.ms and ends > i.ends then
    i.ends, i.reason = math.min(ends, bands().forever), reason
    at.sooner = math.min(at.sooner or i.ends, i.ends)
  end
  if i.ends == 0 then
    i.reason = ""
  end
  settle(at, st, key, i)
  return not i.leaving
end
