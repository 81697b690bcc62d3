-- The score ranges of a line: one key holds all deadlines and places of a name.
--   h:<claim>     of a hold: its deadline (ms), or band_forever without one
--   a:<claim>     of a waiting claim: band_alive + its liveness deadline (ms)
--   q:<claim>     of the same claim: band_queue + its place. A place is (127 - priority)
--                 * 2^44 + the ticket, or what owner/stand has instead of the ticket
--   t:<claim>     of a tombstone: band_tomb + when it may be forgotten (ms)
-- In a pool also:
--   e:<resource>  of a rest: band_rest + its end (ms), or + band_forever without one
--   x:<resource>  of an expiry: band_expiry + when the resource leaves (ms), or
--                 + band_forever for one that leaves when its last holder gives it back
--   u:<name>      of a binding: band_bind + its end (ms)
--   d:<resource>  of a damaged resource: band_damage, + 1 once a hold of it has ended
--                 since, + 2 once it was told; see pool/damaged
-- Milliseconds stay below 2^44 until the year 2527, all scores below 2^53. A swarm's
-- scores have the same width, see swarm/watch.
local band_width = 17592186044416 -- 2^44
local band_forever = 17592186044415
local band_alive = 17592186044416
local band_queue = 2 * 17592186044416
local band_queue_end = 258 * 17592186044416 - 1
local band_tomb = 260 * 17592186044416
local band_rest = 262 * 17592186044416
local band_expiry = 264 * 17592186044416
local band_bind = 266 * 17592186044416
local band_damage = 268 * 17592186044416

-- band_place is where a ticket of a priority stands: the higher priority first, then
-- the lower ticket. A place is a score without band_queue.
local function band_place(priority, ticket)
  return (127 - priority) * band_width + ticket
end
