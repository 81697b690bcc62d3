--- @include "state/record"
--- @include "line/leave"
--- @include "line/dead"
--- @include "line/recount"
-- patrol drops claims that died waiting in the middle of the line, where head does not come. It looks
-- at so many places, further on from the end of the line to its first, and then from the end again.
-- Where it finds dead ones the caller has to sweep at once, so that the next look follows. It
-- returns whether the first in line may have left, and whether it has found any. Where there are fewer places than
-- are counted, somebody else has written the count: it is made anew, so that the look comes to its end.
local function patrol(at, st, budget, places)
  local to = st.look > 0 and math.min(st.look, st.waiting) or st.waiting
  st.look = math.max(to - places, 0)
  local dead, seen = find_dead(at.state, at.line, st.look, to, at.ms)
  if seen < to - st.look then
    recount(at, st)
    st.look = math.max(math.min(st.look, st.waiting), 0)
  end
  for i = 1, math.min(#dead, 2 * budget.left), 2 do
    local text = redis.call("HGET", at.state, "c:" .. dead[i])
    leave_place(at, st, dead[i], dead[i + 1], text and record_read(text))
    budget.left, budget.swept, st.met = budget.left - 1, budget.swept + 1, true
  end
  return dead[1] and st.look == 0, dead[1]
end
