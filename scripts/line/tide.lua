--- @include "state/band"
--- @include "state/record"
--- @include "line/first"
--- @include "line/lowest"
--- @include "line/nudge"
-- soonest returns the earliest deadline that frees something by itself (ms), false for
-- none: of a hold, or of what else the kind knows.
local function soonest(at, st)
  if st.low == nil then
    st.low = lowest(at.line)
  end
  local moment = kind_moment and kind_moment(at)
  return moment and st.low and math.min(st.low, moment) or st.low or moment or false
end

-- hasten tells the node of the first in line of a deadline that this run has
-- set, when it is the earliest; see line/nudge. Where another claim than before is first
-- in line, deadline is true: its node may know of none. Whoever has read the first in
-- line already gives its claim, record and liveness deadline.
local function hasten(at, st, deadline, claim, r, alive)
  local next_at = st.waiting > 0 and deadline and soonest(at, st)
  if not next_at or deadline ~= true and deadline ~= next_at then
    return
  end
  if not claim then
    claim = first(at.line)
    local text = claim and redis.call("HGET", at.state, "c:" .. claim)
    r = text and record_read(text)
    if not r then
      return
    end
    alive = (tonumber(redis.call("ZSCORE", at.line, "a:" .. claim)) or 0) - band_alive
  end
  nudge(at, r, alive, next_at)
end

-- tide says when a place may next become free without anybody's call, for those
-- who wait: the milliseconds until the earliest deadline among the holds, what else the
-- kind knows, and of the first in line, -1 for none; and whether the first in line belongs to
-- the node. Whoever knows them gives the first in line, and its deadline.
local function tide(at, st, node, claim, alive)
  if st.waiting <= 0 then
    return -1, false
  end
  local next_at = soonest(at, st)
  claim = claim or first(at.line)
  if claim and not alive then
    local score = tonumber(redis.call("ZSCORE", at.line, "a:" .. claim))
    alive = score and score - band_alive
  end
  if alive then
    next_at = math.min(next_at or alive, alive)
  end
  local mine = claim and string.sub(claim, 1, #node + 1) == node .. "."
  return next_at and math.max(next_at - at.ms, 0) or -1, mine
end
