--- @include "lib/bands"
-- soonest returns the earliest deadline among the holds (ms), or nil when
-- nothing is held or nothing held ever ends, and whether anything is held.
local function soonest(line)
  local lowest = redis.call("ZRANGE", line, 0, 0, "WITHSCORES")
  local score = tonumber(lowest[2])
  if not score or score >= bands().alive then
    return nil, false
  end
  if score == bands().forever then
    return nil, true
  end
  return score, true
end
