--- @include "line/place"
--- @include "line/remaining"
--- @include "line/deadline"
--- @include "state/pause"
-- The reply of a verb has the same places for every kind; what is missing at its end is 0 or "".
-- Of acquire and requeue it is
--   status, ticket, fence, left_ms, flags, setting, extra, place, ahead, next_ms
--   left_ms  how long the hold or the wait lease lasts, -1 = no end
--   flags    1: the grant is confirmed; 2: the run has stopped at its bound, sweep at once;
--            4: the first in line is of the node; 8, of a pool: next_ms is for the claims of
--            the call that wait, each for what it waits for
--   setting  the capacity, or how many resources there are; of a lock nothing is meant by it
--   extra    what only the kind says
--   place    where a waiting claim stands: its lane and its place, see line/place; and, if it waits
--            for one resource, until when and for which, see pool/lane
--   ahead    how many stand before it, in the lane of that resource if it has one; dead ones may be
--            among them
--   next_ms  how long it is until a place may become free by itself, -1 = never
-- A claim that gets nothing is told how much is held, how many wait, and how much was swept, in the
-- place of ticket, fence and left_ms; and where the name is paused, behind extra, for how long yet,
-- since when (ms), and why.

-- reply_granted is the answer to a claim that holds.
local function reply_granted(at, st, r, fence, deadline, more, extra)
  local flags = (r.phase == "g" and 0 or 1) + (more and 2 or 0)
  local setting = kind_setting and kind_setting(st) or st.cap
  return { "granted", tonumber(r.ticket), fence, remaining(at, deadline), flags, setting, extra or nil }
end

-- reply_paused is the answer to a claim that gets nothing because the name is paused.
local function reply_paused(at, st, swept, more)
  local p = pause_read(at, st)
  local setting = kind_setting and kind_setting(st) or st.cap
  return { "paused", st.used, st.waiting, swept, more and 2 or 0, setting, "", st.pause - at.ms, p.since,
    p.all > p.own and p.why_all or p.why }
end

-- reply_queued is the answer to a claim that waits in a lane.
local function reply_queued(at, st, claim, r, lane, more)
  local apart, moment, mine
  if kind_alarm and st.pause == 0 then
    apart, moment, mine = kind_alarm(at, claim, r)
  end
  local next_ms = moment and math.max(moment - at.ms, 0) or -1
  if not apart then
    next_ms, mine = next_deadline(at, st, r.node)
  end
  local flags = (kind_alarm and 8 or 0) + (more and 2 or 0) + (mine and 4 or 0)
  local setting = kind_setting and kind_setting(st) or st.cap
  local stands, ahead
  if kind_stands then
    stands, ahead = kind_stands(at, claim, r)
  end
  return { "queued", tonumber(r.ticket), 0, r.alive - at.ms, flags, setting, "",
    stands or string.format(place_told, lane, r.place),
    ahead or redis.call("ZRANK", at.line, r.place .. place_mark .. claim), next_ms }
end

-- reply_next writes what the replies of renew, restore and sweep begin with: status,
-- next_ms, flags, setting. alarms has the node's claims of the call that wait, each with its record, nil
-- for none.
local function reply_next(at, st, node, budget, reply, alarms)
  local flags = (budget.left <= 0 or st.met) and 2 or 0
  local mine, least_at = false, nil
  local waits = kind_alarm and alarms and alarms[1]
  local apart = waits and st.pool.parked > 0 and st.pause == 0
  for _, c in ipairs(apart and alarms or {}) do
    local own, moment, first = kind_alarm(at, c.claim, c.r)
    if own == false then
      apart = false
      break
    elseif moment and (not least_at or moment < least_at) then
      least_at, mine = moment, first
    end
  end
  local next_ms = least_at and math.max(least_at - at.ms, 0) or -1
  if not apart then
    next_ms, mine = next_deadline(at, st, node)
  end
  reply[2], reply[3] = next_ms, flags + (mine and 4 or 0) + (waits and 8 or 0)
  reply[4] = kind_setting and kind_setting(st) or st.cap
end
