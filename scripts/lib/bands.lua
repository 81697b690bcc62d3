-- bands names the score ranges of a line, so that one key holds all deadlines
-- and places of a name. A member is "<letter>:<claim>".
--   h: a hold.      score = its deadline (ms), or forever - 1 without one
--   a: a waiter.    score = alive + its liveness deadline (ms)
--   q: its place.   score = queue + (127 - priority) * 2^44 + n
--   t: a tombstone. score = tomb + the time it may be forgotten (ms)
-- and in a pool, followed by a resource or the name of a binding:
--   e: a rest.      score = rest + its end (ms), rest + forever without one
--   x: an expiry.   score = expiry + the time at which the resource leaves (ms),
--                   expiry + forever for one that leaves when it comes back
--   u: a binding.   score = bind + its end (ms)
--   d: damage.      score = damage, + 1 once a hold of it has ended since, + 2 once it
--                   was told; see lib/damaged
-- Milliseconds stay below 2^44 until the year 2527, all scores below 2^53.
local band_width = 17592186044416 -- 2^44
local all_bands = {
  forever = band_width - 1,
  alive = band_width,
  queue = 2 * band_width,
  queue_end = 258 * band_width - 1,
  tomb = 260 * band_width,
  rest = 262 * band_width,
  expiry = 264 * band_width,
  bind = 266 * band_width,
  damage = 268 * band_width,
  width = band_width,
}
local function bands()
  return all_bands
end
