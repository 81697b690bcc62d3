--- @include "state/least"
--- @include "line/place"
--- @include "line/leave"
--- @include "line/expire"
--- @include "line/handoff"
--- @include "line/dead"
--- @include "line/patrol"
-- clear makes way for an arrival. It removes what is left of an earlier try of the claim and, where
-- that may be in the way (full), what has expired; those who wait are granted first. It returns the
-- earliest deadline that it has set (ms), nil for none.
local function clear(at, st, ask, was, held, budget, full)
  local head_left, sooner = false, nil
  if was then
    local _
    if not held and at.head == was.place .. place_mark .. ask.claim then
      head_left = true
    end
    _, _, sooner = leave(at, st, ask.claim, was, held)
    budget.left, full = budget.left - 1, kind_full(at, st, ask.r)
  end
  if full then
    sooner = least(sooner, expire(at, st, budget))
    if ask.waits and st.waiting > 0 and patrol_due(math.max(st.ticket + 1, at.ms)) then
      head_left = patrol(at, st, budget, 8) or head_left
    end
    handoff(at, st, budget, head_left)
  end
  return sooner
end
