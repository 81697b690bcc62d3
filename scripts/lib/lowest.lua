--- @include "lib/bands"
-- lowest returns the earliest deadline of a hold (ms), nil when none has an end, and
-- whether anything is held.
local function lowest(at)
  local band = bands()
  local score = tonumber(redis.call("ZRANGE", at.line, "0", "0", "WITHSCORES")[2])
  local held = score ~= nil and score < band.alive
  if not held or score == band.forever then
    score = nil
  end
  return score, held
end
