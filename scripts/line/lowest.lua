--- @include "state/band"
-- lowest returns the earliest deadline of a hold (ms), false where none has an end, and
-- whether anything is held.
local function lowest(line)
  local score = tonumber(redis.call("ZRANGE", line, "0", "0", "WITHSCORES")[2])
  local held = score ~= nil and score < band_alive
  return held and score ~= band_forever and score, held
end
