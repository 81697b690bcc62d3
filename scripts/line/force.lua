--- @include "state/record"
--- @include "state/least"
--- @include "state/fatten"
--- @include "line/hold"
--- @include "state/save"
--- @include "line/place"
--- @include "line/leave"
--- @include "line/recount"
--- @include "line/expire"
--- @include "line/handoff"
--- @include "line/deadline"
--- @include "wake/wake"
--- @include "wake/publish"
-- force ends holds or waits, each with its claim and record, whoever has them, tells their
-- nodes, and hands on. Each leaves a tombstone for so many milliseconds; wish is nil where a
-- claim was named, else what the kind is to do with a whole hold. It returns what a reply has
-- behind its status: flags (2: the run has stopped at its bound, sweep at once), the fence, and
-- how many claims it ended.
local function force(at, st, targets, stays, wish)
  local budget, head_left, sooner, fence = { left = 100, swept = 0 }, false, nil, nil
  fatten(at, st, false, targets[1].claim)
  for _, e in ipairs(targets) do
    fence = e.r.fence
    if not e.r.held and at.head == e.r.place .. place_mark .. e.claim then
      head_left = true
    end
    local _, _, ends = leave(at, st, e.claim, e.r, e.r.held, "released", stays, wish)
    sooner = least(sooner, ends)
    if kind_remove and wish then
      kind_remove(at, st, e.claim, e.r, wish)
    end
    wake(at, e.r.node, "released", at.name, e.claim)
  end
  if kind_weighs and not wish then
    recount(at, st) -- somebody else may have written the claim, uncounted
  end
  if st.used > 0 or kind_due then
    sooner = least(sooner, expire(at, st, budget))
  end
  handoff(at, st, budget, head_left)
  save(at, st, at.ms + stays)
  notify(at, st, sooner)
  publish(at)
  return (budget.left <= 0 or st.met) and 2 or 0, tonumber(fence), #targets
end

-- force_claim answers a force call that names a claim: of whatever node, or only of the one
-- given; and where only is "1", a claim that waits: it may have been granted since the caller looked.
local function force_claim(at, st, known, claim, node, stays, only)
  if at.newer then
    return { "incompatible", at.newer }
  end
  local r, word = known and record_read(known), "released"
  if not r then
    return { "not_held", string.match(known or "", record_word) or "" }
  elseif node ~= "" and r.node ~= node then
    return { "not_held", "" } -- another node has resumed it: not the one that is meant
  end
  r.held = hold_ends(at, st, claim)
  if not r.held then
    word = "cancelled"
  elseif only == "1" then
    return { "not_held", "" }
  elseif r.held <= at.ms then
    word = "expired"
  end
  return { word, force(at, st, { { claim = claim, r = r } }, stays) }
end
