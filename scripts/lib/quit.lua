--- @include "lib/leave"
--- @include "lib/wants"
--- @include "lib/giveback"
-- quit is leave for a claim on a pool: what it held goes back as well. deadline is
-- that of its hold, nil for one that waits. The cooldown counts from the end of the
-- hold; rest (ms) and reason are what its holder has asked for. It returns whether
-- the resource is still in the pool.
local function quit(at, st, claim, r, resource, deadline, word, stays, rest, reason)
  leave(at, st, claim, r, deadline ~= nil, word, stays)
  if not resource then
    return true
  end
  local w = wants(r.tail)
  local ends = w.cooldown > 0 and math.min(at.ms, deadline or at.ms) + w.cooldown or 0
  local said = ""
  if rest and rest > 0 and at.ms + rest >= ends then
    ends, said = at.ms + rest, reason
  end
  return giveback(at, st, claim, resource, w, ends, said)
end
