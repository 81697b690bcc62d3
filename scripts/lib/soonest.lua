--- @include "lib/bands"
-- soonest returns the earliest deadline that frees something by itself (ms): of a
-- hold or, in a pool, of a rest; nil when there is none. It also returns whether
-- anything is held.
local function soonest(at)
  local band = bands()
  local lowest = redis.call("ZRANGE", at.line, "0", "0", "WITHSCORES")
  local score = tonumber(lowest[2])
  local held = score ~= nil and score < band.alive
  if not held or score == band.forever then
    score = nil
  end
  if at.free then
    local first_rest = redis.call("ZRANGEBYSCORE", at.line, band.rest, band.rest + band.forever - 1,
      "WITHSCORES", "LIMIT", 0, 1)
    local ends = tonumber(first_rest[2])
    if ends and (not score or ends - band.rest < score) then
      score = ends - band.rest
    end
  end
  return score, held
end
