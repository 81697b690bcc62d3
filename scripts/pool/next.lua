--- @include "line/head"
--- @include "pool/wants"
--- @include "pool/binding"
--- @include "pool/pick"
--- @include "pool/lanes"
--- @include "pool/look"
-- next_arrival is what a claim that arrives gets, nil for nothing: the one resource that it waits for,
-- or what it gets by its policy, if nobody in line is first.
local function next_arrival(at, st, budget, arrival)
  if st.pool.free <= 0 or st.halted or lanes_pending(at, st, score_patience) then
    return nil
  end
  local claim, r = head(at, st, budget, arrival)
  if not r then
    return nil
  end
  local w = arrival.wants or wants_read(r.terms)
  w.resource = arrival.target or w.resource
  local chosen = pick(at, st, w, budget)
  if chosen and lane_of(at, st, chosen.key) then
    lane_touch(at, st, chosen.key)
    st.met = true -- an earlier run has stopped at its bound: who waits for that comes first
    return claim, r
  end
  return claim, r, chosen
end

-- next_apart is what the first of a lane gets: claim, record, choice. The binding that it renews does
-- not become shorter.
local function next_apart(at, lane)
  local w = wants_read(lane.r.terms)
  if w.bind ~= "" then
    w.bound, w.until_then = binding_of(at, w.bind)
  end
  return lane.claim, lane.r, { key = lane.key, item = lane.item, wants = w }
end

-- next_of_lanes is who comes next, of the first in line and the first of those lanes whose resource has
-- become free, and what it gets: claim, record, choice.
local function next_of_lanes(at, st, budget)
  if not st.patient then
    lanes_patience(at, st, budget)
  end
  local apart = lanes_first(at, st, budget)
  if budget.left <= 0 or st.halted then
    return nil -- a lane that was not looked at may come first
  end
  local claim, r, lane = head(at, st, budget)
  if apart and not (r and string.format(lane_order, lane, r.place) < apart.order) then
    return next_apart(at, apart)
  elseif not r or st.pool.free <= 0 then
    return claim, r
  end
  local chosen = pick(at, st, wants_read(r.terms), budget)
  local known = chosen and st.touched and st.touched[chosen.key]
  if chosen and not known and lane_of(at, st, chosen.key) then
    lane_touch(at, st, chosen.key) -- an earlier run has stopped at its bound
    budget.left = budget.left - 1
    return next_of_lanes(at, st, budget)
  elseif not chosen and apart and budget.left > 0 then
    return next_apart(at, apart)
  end
  return claim, r, chosen
end

-- pool_next is who comes next, and what it gets: claim, record, choice.
local function pool_next(at, st, budget)
  if st.pool.parked > 0 then
    return next_of_lanes(at, st, budget)
  end
  local claim, r = head(at, st, budget)
  return claim, r, r and st.pool.free > 0 and pick(at, st, wants_read(r.terms), budget) or nil
end
