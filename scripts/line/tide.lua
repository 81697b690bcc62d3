--- @include "state/record"
--- @include "line/earliest"
--- @include "line/first"
--- @include "line/nudge"
-- soonest returns the earliest deadline that frees something by itself (ms), false for
-- none: of a hold, or of what else the kind knows.
local function soonest(at, st)
  local low, moment = earliest(at, st), kind_moment and kind_moment(at)
  if low == 0 then
    return moment or false
  end
  return moment and math.min(low, moment) or low
end

-- tide_first returns the first claim in line, and its record.
local function tide_first(at)
  local claim = first(at.line)
  local text = claim and redis.call("HGET", at.state, "c:" .. claim)
  return claim, text and record_read(text)
end

-- hasten tells the node of the first in line of a deadline that this run has
-- set, when it is the earliest; see line/nudge. Where another claim than before is first
-- in line, deadline is true: its node may know of none. One that has passed says that there is
-- something to sweep. Whoever has read the first in line already gives its claim and record.
local function hasten(at, st, deadline, claim, r)
  if st.waiting <= 0 or not deadline then
    return
  end
  local next_at = deadline ~= true and deadline <= at.ms and deadline or soonest(at, st)
  if not next_at or deadline ~= true and deadline ~= next_at then
    return
  end
  if not r then
    claim, r = tide_first(at)
  end
  if claim and r then
    nudge(at, r, next_at)
  end
end

-- tide says when a place may next become free without anybody's call, for those
-- who wait: the milliseconds until the earliest deadline among the holds, what else the
-- kind knows, and of the first in line, -1 for none; and whether the first in line belongs to
-- the node.
local function tide(at, st, node)
  if st.waiting <= 0 then
    return -1, false
  end
  local next_at, claim, r = soonest(at, st), tide_first(at)
  if r then
    next_at = math.min(next_at or math.huge, record_alive(r))
  end
  local mine = claim and string.sub(claim, 1, #node + 1) == node .. "."
  return next_at and math.max(next_at - at.ms, 0) or -1, mine
end
