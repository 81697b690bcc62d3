--- @include "state/score"
--- @include "state/int"
--- @include "state/least"
--- @include "line/hold"
--- @include "line/notify"
--- @include "pool/item"
--- @include "pool/lanes"
-- lanes_wait notes when a lane whose resource is not free is to be looked at again (ms, nil = when
-- somebody touches it), and tells the first member of what it waits for.
local function lanes_wait(at, st, lane, item, ends, budget)
  if ends then
    redis.call("ZADD", at.line, int(score_moment + ends), "w:" .. lane.key)
  else
    redis.call("ZREM", at.line, "w:" .. lane.key)
  end
  local _, r = lanes_head(at, st, lane, budget)
  local next_at = least(ends ~= score_forever and ends or nil, item and hold_first(at, item.claims))
  if r and next_at and next_at < score_forever then
    notify_node(at, r, next_at)
  end
end

-- lanes_tell tells the first of a lane that is left over that there is something to sweep: the caller,
-- who has to, may die. During a pause that is so from its end on.
local function lanes_tell(at, st, lane)
  local _, _, text = lane_first(at, lane.key, lane.number)
  local r = text and record_read(text)
  if r then -- else it has just come, and is told by the reply
    notify_node(at, r, math.max(st.pause, at.ms))
  end
  return r
end

-- lanes_keep notes when the lanes that this run has touched, and not looked at since, are to be
-- looked at: at once, if their resource is free and the name is not paused.
local function lanes_keep(at, st)
  local told
  local budget = { left = 0, swept = 0 } -- nobody is told: a claim that has just come has no record yet
  for _, lane in ipairs(st.touched or {}) do
    local item = not lane.over and lane.dirty and item_read(at, lane.key)
    if item and not item.listed and not item.leaving then
      lanes_wait(at, st, lane, item, item_moment(item), budget)
    elseif (not item or item.leaving) and lane.dirty and not lane.over and not st.pool.filled then
      lanes_wait(at, st, lane, nil, score_forever, budget)
    elseif (lane.dirty or lane.order) and not lane.over then
      redis.call("ZADD", at.line, int(score_moment + at.ms), "w:" .. lane.key)
      st.met, told = st.met or st.pause == 0, told or lanes_tell(at, st, lane)
    end
  end
end
