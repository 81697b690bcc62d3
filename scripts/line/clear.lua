--- @include "state/least"
--- @include "line/first"
--- @include "line/leave"
--- @include "line/expire"
--- @include "line/handoff"
--- @include "line/look"
--- @include "line/patrol"
-- clear makes way for an arrival. What is left of an earlier try of the claim goes, and what
-- has expired, where that may be in the way (full); whoever waits comes first. It returns the
-- earliest deadline that it has set (ms), nil for none.
local function clear(at, st, ask, was, held, budget, full)
  local parted, sooner = false, nil
  if was then
    local _
    parted = not held and first(at.line) == ask.claim
    _, _, sooner = leave(at, st, ask.claim, was, held)
    budget.left, full = budget.left - 1, kind_full(at, st, ask.r)
  end
  if full then
    sooner = least(sooner, expire(at, st, budget))
    if ask.waits and st.waiting > 0 and patrol_due(math.max(st.ticket + 1, at.ms)) then
      parted = patrol(at, st, budget, 8) or parted
    end
    handoff(at, st, budget, parted)
  end
  return sooner
end
