--- @include "lib/bands"
--- @include "lib/first"
--- @include "lib/soonest"
-- tide says when a place may next become free without anybody's call, for those
-- who wait: the milliseconds until the earliest deadline among the holds, the
-- rests of a pool and of the first in line, -1 for none; and 1 if the first in line belongs to the
-- node, else 0.
local function tide(at, st, node)
  if st.waiting <= 0 then
    return -1, 0
  end
  local next_at = soonest(at)
  local claim = first(at.line)
  local alive = claim and tonumber(redis.call("ZSCORE", at.line, "a:" .. claim))
  if alive then
    alive = alive - bands().alive
    next_at = math.min(next_at or alive, alive)
  end
  local mine = claim and string.sub(claim, 1, #node + 1) == node .. "."
  return next_at and math.max(next_at - at.ms, 0) or -1, mine and 1 or 0
end
