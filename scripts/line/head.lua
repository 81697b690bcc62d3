--- @include "state/band"
--- @include "state/record"
--- @include "line/first"
--- @include "line/leave"
--- @include "wake/wake"
-- head returns the first in line: the claim, its record, and its liveness deadline (ms).
-- On the way it drops waiters that have died, and takes out and tells those that have
-- become too heavy, within the budget. An arrival takes part as if it stood in line; where
-- somebody else is first, only that claim is returned, or nil where that one has the same
-- place or is the same claim.
local function head(at, st, budget, arrival)
  while st.waiting > 0 and (arrival or budget.left > 0) do
    local claim, place = first(at.line)
    if not claim and not arrival then
      st.waiting = 0
    end
    if not claim or arrival and arrival.place < place then
      break
    elseif arrival then
      return arrival.place > place and claim ~= arrival.claim and claim or nil
    end
    local text = redis.call("HGET", at.state, "c:" .. claim)
    local r = text and record_read(text)
    local alive = (tonumber(redis.call("ZSCORE", at.line, "a:" .. claim)) or 0) - band_alive
    local heavy = r and alive > at.ms and kind_heavy and kind_heavy(st, r)
    if r and alive > at.ms and not heavy then
      return claim, r, alive
    end
    leave(at, st, claim, r)
    if heavy then
      wake(at, r.node, "too_heavy", at.name, claim, st.cap)
    end
    budget.left = budget.left - 1
  end
  if arrival then
    return arrival.claim, arrival.r, at.ms + arrival.r.wait
  end
end
