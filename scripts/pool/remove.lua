--- @include "state/score"
-- remove_claim takes a claim off the item of a resource. The resource then rests until ends (ms),
-- or for longer if somebody has asked for that meanwhile; or it leaves. It returns whether the claim
-- was there, and the end of the rest that begins (ms), nil for none. It writes nothing.
local function remove_claim(at, i, claim, ends, reason)
  local count, rests = #i.claims, nil
  for n = count, 1, -1 do
    if i.claims[n] == claim then
      table.remove(i.claims, n)
    end
  end
  if #i.claims == count then
    return false, nil
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
    i.ends, i.reason = math.min(ends, score_forever), reason
    rests = i.ends
  end
  if i.ends == 0 then
    i.reason = ""
  end
  return true, rests
end
