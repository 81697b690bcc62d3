--- @include "state/least"
--- @include "line/first"
--- @include "line/leave"
--- @include "line/expire"
--- @include "line/handoff"
-- clear makes way for an arrival. What is left of an earlier try of the claim goes, and what
-- has expired, where that may be in the way (full); whoever waits comes first. It returns the
-- earliest deadline that it has set (ms), nil for none, and how much it swept.
local function clear(at, st, ask, was, held, budget, full)
  local parted, sooner, swept = false, nil, 0
  if was then
    local _
    parted = not held and first(at.line) == ask.claim
    _, _, sooner = leave(at, st, ask.claim, was, held)
    budget.left, full = budget.left - 1, kind_full(at, st, ask.r)
  end
  if full then
    local before, dead, ends = budget.left, expire(at, st, budget)
    sooner, swept = least(sooner, ends), before - budget.left
    handoff(at, st, budget, parted or dead)
  end
  return sooner, swept
end
