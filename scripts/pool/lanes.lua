--- @include "state/score"
--- @include "state/int"
--- @include "state/record"
--- @include "line/place"
--- @include "line/leave"
--- @include "pool/lane"
-- lanes_move has a member of a lane stand in the line, with the place that it has.
local function lanes_move(at, st, claim)
  local text = redis.call("HGET", at.state, "c:" .. claim)
  local r = text and record_read(text)
  local lane, place = string.match(r and r.phase == "w" and #r.place == lane_width and r.place or "", lane_split)
  if not lane then
    return
  end
  redis.call("ZREM", at.line, r.place .. place_mark .. claim)
  lane_leave(at, st, claim, r.place)
  r.place = place
  redis.call("ZADD", at.line, lane, place .. place_mark .. claim)
  redis.call("HSET", at.state, "c:" .. claim, record_write(r))
  st.moved = true
end

-- lanes_patience moves those who have waited long enough for one resource, once in a run. Where some of
-- them are left over nobody is granted anything in this run: they may stand ahead. Half of the budget is
-- left for what comes of it.
local function lanes_patience(at, st, budget)
  local most = math.floor(budget.left / 2)
  local claims = redis.call("ZRANGEBYSCORE", at.line, int(score_patience), int(score_patience + at.ms),
    "LIMIT", "0", int(most + 1))
  for n = 1, math.min(#claims, most) do
    redis.call("ZREM", at.line, claims[n])
    lanes_move(at, st, string.sub(claims[n], 3))
    budget.left = budget.left - 1
  end
  st.patient, st.halted = true, #claims > most
  st.met = st.met or st.halted
end

-- lanes_due is lanes_patience, and then notes which lanes are to be looked at by now. During a pause all
-- of them stay as they are.
local function lanes_due(at, st, budget)
  if st.pause > 0 then
    return
  end
  lanes_patience(at, st, budget)
  if st.halted then
    return
  end
  local most = math.floor(budget.left / 2)
  local marks = redis.call("ZRANGEBYSCORE", at.line, int(score_moment), int(score_moment + at.ms),
    "LIMIT", "0", int(most))
  if st.pool.filled and #marks < most then -- what is not in the pool now will not come
    local absent = int(score_moment + score_forever)
    for _, member in ipairs(redis.call("ZRANGEBYSCORE", at.line, absent, absent, "LIMIT", "0", int(most - #marks))) do
      marks[#marks + 1] = member
    end
  end
  for _, member in ipairs(marks) do
    redis.call("ZREM", at.line, member)
    lane_touch(at, st, string.sub(member, 3))
    budget.left = budget.left - 1
  end
  st.met = st.met or #marks >= most
end

-- lanes_head returns the first member of a lane that lives: claim, record and place. On the way it
-- drops those that have died, within the budget.
local function lanes_head(at, st, lane, budget)
  while budget.left > 0 and not lane.over do
    local place, claim, text = lane_first(at, lane.key, lane.number)
    if not claim then
      lane_end(at, st, lane.key) -- somebody has deleted the line
      break
    end
    local r = text and record_read(text)
    if r and r.place == place and r.alive > at.ms then
      return claim, r, place
    end
    leave_place(at, st, claim, place, r)
    budget.left, budget.swept = budget.left - 1, budget.swept + 1
  end
end

-- lanes_pending says whether there are moments of lanes in a range of the line that have passed.
local function lanes_pending(at, st, from)
  return st.pool.parked > 0 and redis.call("ZRANGEBYSCORE", at.line, int(from), int(from + at.ms),
    "LIMIT", "0", "1")[1] and true or false
end
