--- @include "state/record"
--- @include "line/earliest"
--- @include "line/first"
--- @include "line/notify"
-- soonest returns the earliest deadline that frees something by itself (ms), false for
-- none: of a hold, or of what else the kind knows. While the name is paused nothing else matters than
-- the end of that.
local function soonest(at, st)
  if st.pause > 0 then
    return st.pause
  end
  local low, moment = earliest(at, st), kind_moment and kind_moment(at, st)
  if low == 0 then
    return moment or false
  end
  return moment and math.min(low, moment) or low
end

-- first_waiter returns the first claim in line, and its record as text.
local function first_waiter(at)
  local claim = first(at.line)
  return claim, claim and redis.call("HGET", at.state, "c:" .. claim)
end

-- notify tells the node of the first in line of a deadline that this run has set, if that is the
-- earliest one; see line/notify. deadline is true where the first in line has changed: its node may
-- know of no deadline. A deadline that has passed says that there is something to sweep. A caller
-- that has read the first in line gives its claim and record.
local function notify(at, st, deadline, claim, r)
  if in_line(st) <= 0 or not deadline then
    return
  end
  local next_at = deadline ~= true and deadline <= at.ms and deadline or soonest(at, st)
  if not next_at or deadline ~= true and deadline ~= next_at then
    return
  end
  if not r then
    claim, r = first_waiter(at)
    r = r and record_read(r)
  end
  if claim and r then
    notify_node(at, r, next_at)
  end
end

-- next_deadline is how long it is (ms, -1 = for ever) until a place may become free without
-- anybody's call: until the earliest deadline of the holds, of what else the kind knows, and of the
-- first in line; or until the end of the pause. It also returns whether the first in line belongs to the node.
local function next_deadline(at, st, node)
  if st.waiting <= 0 then
    return -1, false
  end
  local next_at, claim, text = soonest(at, st), first_waiter(at)
  if text and st.pause == 0 then
    next_at = math.min(next_at or math.huge, (string.match(text, record_lives) or 0) + 0)
  end
  local mine = claim and string.sub(claim, 1, #node + 1) == node .. "."
  return next_at and math.max(next_at - at.ms, 0) or -1, mine
end
