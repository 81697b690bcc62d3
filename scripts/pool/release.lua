--- @include "state/score"
--- @include "pool/item"
--- @include "pool/settle"
--- @include "pool/remove"
--- @include "pool/damaged"
--- @include "pool/cooldown"
-- release_resource ends what a claim had of a resource, which then rests until cooldown_end. With
-- expiry above 0 the resource leaves the pool so long (ms) from now, unless it leaves anyway. It
-- returns whether the resource is still in the pool, and the end of the rest that it begins
-- (ms), nil for none. w is what the claim wants, nil where its record is gone.
local function release_resource(at, st, claim, key, w, from, rest, reason, expiry)
  redis.call("HDEL", at.state, "r:" .. claim)
  local i, bad = item_read(at, key)
  if bad then
    damaged(at, st, key, not (w and w.shared))
    return true, nil
  elseif not i then
    return false, nil
  end
  local was_there, rests = remove_claim(at, i, claim, cooldown_end(at, st, key, i, w, from, rest, reason))
  if was_there and expiry > 0 and not i.leaving then
    i.expiry = math.min(at.ms + expiry, score_forever - 1)
  end
  if was_there then -- else it was shared, and has kept nothing from anybody
    settle(at, st, key, i)
  end
  return not i.leaving, rests
end
