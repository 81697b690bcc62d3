-- The scores of a line: one key holds the places and the deadlines of a name. Who stands first
-- in line is its first member.
--   <place>-<claim>  of a waiting claim: its lane, see line/place
--   h:<claim>     of a hold: score_hold + its deadline (ms), or + score_forever without one
--   t:<claim>     of a tombstone: score_tomb + when it may be forgotten (ms)
--   -             keeps the line of a name in its fat form from ever being empty: score_mark
-- In a pool also:
--   o:<target>    of what an operator has changed: score_op + when that may be forgotten (ms); see
--                 state/revision
--   e:<resource>  of a rest: score_rest + its end (ms), or + score_forever without one
--   x:<resource>  of an expiry: score_expiry + when the resource leaves (ms), or
--                 + score_forever for one that leaves when its last holder gives it back
--   u:<name>      of a binding: score_bind + its end (ms)
--   <lane><place>-<claim>  of a claim that waits for one resource: the number of that resource's
--                 lane, score_lanes to score_hold - 1, see pool/lane
--   w:<resource>  of a resource with a lane: score_moment + when the lane is to be looked at (ms),
--                 or + score_forever for one that is not in the pool
--   p:<claim>     of a claim that waits for one resource: score_patience + when it takes any (ms)
--   d:<resource>  of a damaged resource: score_damage, + 1 once a hold of it has ended
--                 since, + 2 once it was told; see pool/damaged
-- Milliseconds have at most 13 digits until the year 2286, so the score of a hold is 1 and its
-- deadline in 13 digits. All scores are below 2^53. A swarm's scores have the same width, see
-- swarm/open.
local score_width = 10000000000000
local score_forever = 9999999999999
local score_last_lane = 511
local score_lanes = 512
local score_hold = 10000000000000
local score_op = 256 * 10000000000000
local score_patience = 257 * 10000000000000
local score_moment = 258 * 10000000000000
local score_tomb = 260 * 10000000000000
local score_rest = 262 * 10000000000000
local score_expiry = 264 * 10000000000000
local score_bind = 266 * 10000000000000
local score_damage = 268 * 10000000000000
local score_mark = 9007199254740991
-- A member of more than 64 bytes has Redis leave the compact form of a sorted set, which it walks through at each step,
-- for good. Plain cases have a line leave it with its so many-th hold or waiting claim.
local score_long = "-----------------------------------------------------------------"
local score_crowd = 8

-- Scores as the plain cases write and read them: before the deadline of a hold, the first and the
-- last of those with an end, where the deadline begins, and that of the member -. Of a pool the first of what an
-- operator has changed, of those who wait for one resource, and of rests; before a moment, the last of these until
-- then, and the one behind the last rest before it; and before the end of a binding.
local score_held = "1"
local score_first_hold = "10000000000000"
local score_last_hold = "19999999999998"
local score_deadline = 2
local score_kept = "9007199254740991"
local score_first_op = "2560000000000000"
local score_first_patience = "2570000000000000"
local score_waited = "257"
local score_first_rest = "2620000000000000"
local score_rested = "262"
local score_before_rest = "(262"
local score_before_bind = "266"
