--- @include "lib/bands"
-- comesback takes a claim off the item of a resource, which then rests until ends (ms), and
-- for as long as somebody has asked for meanwhile, or leaves. It returns whether the claim
-- was there, and writes nothing. The nearest end of a rest that a run has begun is in
-- at.sooner, for hasten.
local function comesback(at, i, claim, ends, reason)
  local count = #i.claims
  for n = count, 1, -1 do
    if i.claims[n] == claim then
      table.remove(i.claims, n)
    end
  end
  if #i.claims == count then
    return false
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
  return true
end
