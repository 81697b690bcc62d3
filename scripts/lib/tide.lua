--- @include "lib/bands"
--- @include "lib/first"
--- @include "lib/soonest"
-- tide says when a place may next become free without anybody's call, for those
-- who wait: the milliseconds until the earliest deadline among the holds, the
-- rests of a pool and of the first in line, -1 for none; and 1 if the first in line belongs to the
-- node, else 0. Whoever knows them gives the earliest of the deadlines that are not the
-- first in line's (false for none), the first in line, and its deadline.
local function tide(at, st, node, next_at, claim, alive)
  if st.waiting <= 0 then
    return -1, 0
  end
  if next_at == nil then
    next_at = soonest(at)
  end
  claim = claim or first(at.line)
  if claim and not alive then
    local score = tonumber(redis.call("ZSCORE", at.line, "a:" .. claim))
    alive = score and score - bands().alive
  end
  if alive then
    next_at = math.min(next_at or alive, alive)
  end
  local mine = claim and string.sub(claim, 1, #node + 1) == node .. "."
  return next_at and math.max(next_at - at.ms, 0) or -1, mine and 1 or 0
end
