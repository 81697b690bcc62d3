--- @include "state/score"
--- @include "state/least"
--- @include "line/hold"
--- @include "line/place"
--- @include "pool/item"
--- @include "pool/lane"
-- A claim stands apart while it waits for one resource alone.

-- apart_stand has a claim stand in the lane of the resource that it waits for; apart is as lane_told has it
-- behind the place.
local function apart_stand(at, st, claim, r, lane, apart)
  local ends, key = string.match(apart, lane_member)
  r.place = lane .. r.place
  lane_enter(at, st, claim, r, key, ends)
end

-- apart_rank is how many stand before a claim in its lane; nil for others than those who wait for one
-- resource.
local function apart_rank(at, claim, r)
  local member = r.place .. place_mark .. claim
  local lane = #r.place == lane_width and redis.call("ZSCORE", at.line, member)
  return lane and redis.call("ZRANK", at.line, member) - redis.call("ZCOUNT", at.line, "-inf", "(" .. lane) or nil
end

-- apart_stands is where such a claim stands, and how many before it; nil for others.
local function apart_stands(at, claim, r)
  local ahead = apart_rank(at, claim, r)
  if ahead then
    return lane_told(at, claim, r), ahead
  end
end

-- apart_moment is when a claim that waits for one resource may get something without anybody's call
-- (ms, nil = never), and whether that is for this claim first: at the end of its wait for that resource, or
-- when that one's rest or a hold of it ends.
local function apart_moment(at, claim, ahead)
  local ends, key = string.match(redis.call("HGET", at.state, "q:" .. claim) or "", lane_member)
  if not key then
    return nil, false
  end
  local own = ends ~= lane_named and ends ~= "0" and tonumber(ends) or nil
  local mark = redis.call("ZSCORE", at.line, "w:" .. key)
  local next_at = mark and mark - score_moment < score_forever and mark - score_moment or nil
  local item = item_read(at, key)
  next_at = least(next_at, item and hold_first(at, item.claims))
  if own and own <= (next_at or own) then
    return own, true
  end
  return next_at and next_at < score_forever and next_at or nil, ahead == 0
end

-- apart_alarm is whether a claim stands apart, and then what apart_moment says; nil for one that this
-- run has granted.
local function apart_alarm(at, claim, r)
  if #r.place ~= lane_width then
    return false
  end
  local ahead = apart_rank(at, claim, r)
  if ahead then
    return true, apart_moment(at, claim, ahead)
  elseif not hold_ends(at, nil, claim) then
    return false
  end
end

-- apart_asks is whose holds are in the way of a claim that stands first in the lane of a resource, and how
-- many of them it needs back. In the line any one will do.
local function apart_asks(at, claim, r)
  if apart_rank(at, claim, r) ~= 0 then
    return nil, 1
  end
  local key = select(2, string.match(redis.call("HGET", at.state, "q:" .. claim) or "", lane_member))
  local i = key and item_read(at, key)
  if not i then
    return {}, 0
  end
  return i.claims, #i.claims + 1 - i.max
end

-- apart_rejoin is where a claim that stood apart belongs now: what the claim is, nil if it waits,
-- and where, as apart_stand takes it, empty for the line.
local function apart_rejoin(at, st, apart)
  local ends, key = string.match(apart, lane_member)
  if not key or ends ~= lane_named and ends ~= "0" and ends - at.ms <= 0 then
    return nil, ""
  elseif not st.form or not st.pool.filled or item_there(at, key) then
    return nil, apart
  elseif ends == lane_named then
    return "absent"
  end
  return nil, ""
end
