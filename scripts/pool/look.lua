--- @include "state/score"
--- @include "pool/item"
--- @include "pool/settle"
--- @include "pool/lanes"
--- @include "pool/mark"
--- @include "wake/wake"
-- lanes_empty ends the lane of a resource that nobody can get any more: who asked for it by its
-- key is told that it is absent, who was bound to it stands in the line from now on.
local function lanes_empty(at, st, lane, budget)
  while true do
    local claim, r, place = lanes_head(at, st, lane, budget)
    if not claim then
      return
    end
    local ends = string.match(redis.call("HGET", at.state, "q:" .. claim) or "", lane_member)
    if ends == lane_named then
      leave_place(at, st, claim, place, r)
      wake(at, r.node, "absent", at.name, claim)
    else
      lanes_move(at, st, claim)
    end
    budget.left = budget.left - 1
  end
end

-- lanes_look finds out what the members of a lane can get, within the budget.
local function lanes_look(at, st, lane, budget)
  local item, bad = item_read(at, lane.key)
  lane.dirty = false
  if item and item.expiry > 0 and item.expiry <= at.ms and not item.leaving then
    redis.call("ZREM", at.line, "x:" .. lane.key) -- first, as it needs no memory
    item.leaving = true
    settle(at, st, lane.key, item)
    lane.dirty = false
  end
  if bad then
    lanes_wait(at, st, lane, nil, nil, budget)
  elseif (not item or item.leaving) and not st.pool.filled then
    lanes_wait(at, st, lane, nil, score_forever, budget) -- it may still come
  elseif not item or item.leaving then
    lanes_empty(at, st, lane, budget)
    lane.dirty = not lane.over and budget.left <= 0
  elseif item.listed then
    local claim, r, place = lanes_head(at, st, lane, budget)
    lane.claim, lane.r, lane.item, lane.order = claim, r, item, place
    lane.dirty = not claim and not lane.over
  else
    lanes_wait(at, st, lane, item, item_moment(item), budget)
  end
end

-- lanes_first returns, of the lanes that this run has touched and whose resource is free, the one
-- whose first member comes first, nil for none.
local function lanes_first(at, st, budget)
  local best, n = nil, 1
  while st.touched and st.touched[n] do -- to look may touch others
    local lane = st.touched[n]
    if lane.dirty and not lane.over and budget.left > 0 then
      lanes_look(at, st, lane, budget)
    end
    if lane.order and not lane.over and (not best or lane.order < best.order) then
      best = lane
    end
    n = n + 1
  end
  return best
end
