--- @include "state/record"
--- @include "line/first"
--- @include "line/leave"
--- @include "wake/wake"
-- head returns the first in line: the claim, its record and its lane. On the way it drops waiters that
-- have died, and takes out and tells those that have become too heavy, within the budget. An
-- arrival takes part as if it stood in line; where somebody else is first, only that claim is
-- returned.
local function head(at, st, budget, arrival)
  while in_line(st) > 0 and (arrival or budget.left > 0) do
    local claim, place, lane = first(at.line)
    if not claim and not arrival then
      st.waiting = st.waiting - in_line(st)
    end
    if not claim or arrival and (arrival.lane - lane < 0 or arrival.lane + 0 == lane and arrival.place < place) then
      break
    elseif arrival then
      return claim
    end
    local text = redis.call("HGET", at.state, "c:" .. claim)
    local r = text and record_read(text)
    local alive = r and r.place == place and r.alive > at.ms
    local heavy = alive and kind_heavy and kind_heavy(st, r)
    if alive and not heavy then
      return claim, r, lane
    end
    leave_place(at, st, claim, place, r)
    if heavy then
      wake(at, r.node, "too_heavy", at.name, claim, st.cap)
    end
    budget.left, budget.swept = budget.left - 1, budget.swept + 1
  end
  if arrival then
    return arrival.claim, arrival.r
  end
end
