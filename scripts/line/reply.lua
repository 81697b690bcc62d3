--- @include "line/place"
--- @include "line/remaining"
--- @include "line/deadline"
-- The reply of a verb has the same places for every kind; what is missing at its end is 0 or "".
-- Of acquire and requeue it is
--   status, ticket, fence, left_ms, flags, setting, extra, place, ahead, next_ms
--   left_ms  how long the hold or the wait lease lasts, -1 = no end
--   flags    1: the grant is confirmed; 2: the run has stopped at its bound, sweep at once;
--            4: the first in line is of the node
--   setting  the capacity, or how many resources there are; of a lock nothing is meant by it
--   extra    what only the kind says
--   place    where a waiting claim stands: its lane and its place, see line/place
--   ahead    how many stand before it; dead ones may be among them
--   next_ms  how long it is until a place may become free by itself, -1 = never
-- A claim that gets nothing is told how much is held, how many wait, and how much was swept, in the
-- place of ticket, fence and left_ms.

-- reply_granted is the answer to a claim that holds.
local function reply_granted(at, st, r, fence, deadline, more, extra)
  local flags = (r.phase == "g" and 0 or 1) + (more and 2 or 0)
  local setting = kind_setting and kind_setting(st) or st.cap
  return { "granted", tonumber(r.ticket), fence, remaining(at, deadline), flags, setting, extra or nil }
end

-- reply_queued is the answer to a claim that waits in a lane.
local function reply_queued(at, st, claim, r, lane, more)
  local next_ms, mine = next_deadline(at, st, r.node)
  local flags = (more and 2 or 0) + (mine and 4 or 0)
  local setting = kind_setting and kind_setting(st) or st.cap
  local ahead = redis.call("ZRANK", at.line, r.place .. place_mark .. claim)
  return { "queued", tonumber(r.ticket), 0, record_alive(r) - at.ms, flags, setting, "",
    string.format(place_told, lane, r.place), ahead, next_ms }
end

-- reply_next writes what the replies of renew, restore and sweep begin with: status,
-- next_ms, flags, setting.
local function reply_next(at, st, node, budget, reply)
  local next_ms, mine = next_deadline(at, st, node)
  reply[2], reply[3] = next_ms, ((budget.left <= 0 or st.met) and 2 or 0) + (mine and 4 or 0)
  reply[4] = kind_setting and kind_setting(st) or st.cap
end
