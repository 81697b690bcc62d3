--- @include "lib/bands"
--- @include "lib/lowest"
-- soonest returns the earliest deadline that frees something by itself (ms): of a
-- hold or, in a pool, of a rest; nil when there is none.
local function soonest(at)
  local band, score = bands(), lowest(at)
  if at.free then
    local first_rest = redis.call("ZRANGEBYSCORE", at.line, band.rest, band.rest + band.forever - 1,
      "WITHSCORES", "LIMIT", 0, 1)
    local ends = tonumber(first_rest[2])
    if ends and (not score or ends - band.rest < score) then
      score = ends - band.rest
    end
  end
  return score
end
