--- @include "state/record"
--- @include "line/leave"
--- @include "line/dead"
-- patrol drops claims that died waiting where head does not come, in the middle of the line: it
-- looks at so many places before those that it looked at last, and from the end of the line
-- again once it has come to the first. Where it finds any the caller has to sweep at once, so
-- that a look follows. It returns whether the first in line may have left,
-- and whether it has found any.
local function patrol(at, st, budget, places)
  local to = st.look > 0 and math.min(st.look, st.waiting) or st.waiting
  st.look = math.max(to - places, 0)
  local dead = find_dead(at.state, at.line, st.look, to, at.ms)
  for i = 1, math.min(#dead, 2 * budget.left), 2 do
    local text = redis.call("HGET", at.state, "c:" .. dead[i])
    leave_place(at, st, dead[i], dead[i + 1], text and record_read(text))
    budget.left, budget.swept, st.met = budget.left - 1, budget.swept + 1, true
  end
  return dead[1] and st.look == 0, dead[1]
end
