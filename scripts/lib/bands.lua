-- bands names the score ranges of a line, so that one key holds all deadlines
-- and places of a name. A member is "<letter>:<claim>".
--   h: a hold.      score = its deadline (ms), or forever - 1 without one
--   a: a waiter.    score = alive + its liveness deadline (ms)
--   q: its place.   score = queue + (127 - priority) * 2^44 + n
--   t: a tombstone. score = tomb + the time it may be forgotten (ms)
-- Milliseconds stay below 2^44 until the year 2527, all scores below 2^53.
local function bands()
  local width = 17592186044416 -- 2^44
  return {
    forever = width - 1,
    alive = width,
    queue = 2 * width,
    queue_end = 258 * width - 1,
    tomb = 260 * width,
    width = width,
  }
end
