--- @include "state/score"
--- @include "state/int"
--- @include "line/place"
-- A claim that waits for one resource stands in the lane of that resource. A lane exists while
-- it has members, and these fields of the state with it
--   l:<resource>  the lane's number, which is the score of its members: the ticket of the claim
--                 that opened it, or the next number that no other lane has
--   q:<claim>     of a member: until when it waits for nothing else (ms), 0 = for ever, - = of a
--                 claim that asked for the resource itself; and the resource, any bytes
-- The place of a member is three digits of its lane in the line and thirteen of its ticket, so
-- a lane has the order of the line; see line/place.
local lane_width = 16
local lane_named = "-"
local lane_order = "%03d%s"
local lane_gap = " "
local lane_split = "^(%d%d%d)(%d+)$"
local lane_member = "^(%S+) (.*)$"

-- lane_of returns the number of a resource's lane as text, nil for none.
local function lane_of(at, st, key)
  return st.pool.parked > 0 and redis.call("HGET", at.state, "l:" .. key) or nil
end

-- lane_touch notes that the lane of a resource, if there is one, is to be looked at in this run:
-- what has become of the resource may concern those who wait for it. See pool/lanes. These are all
-- the fields of what is noted: key; number; dirty, true until it has been looked at; over, true
-- once the lane is gone; and of the first of a lane whose resource is free, claim, r, item and order,
-- by which lanes and the line compare.
local function lane_touch(at, st, key)
  local known = st.touched and st.touched[key]
  local number = not known and lane_of(at, st, key)
  if number then
    st.touched = st.touched or {}
    known = { key = key, number = number }
    st.touched[key], st.touched[#st.touched + 1] = known, known
  end
  if known then
    known.dirty, known.order = true, nil
  end
end

-- lane_first returns the first member of a lane: its place, its claim and that one's record as text,
-- nil where the lane's number has members of another lane, or none.
local function lane_first(at, key, number)
  local member = redis.call("ZRANGEBYSCORE", at.line, number, number, "LIMIT", "0", "1")[1]
  local place, claim = string.match(member or "", place_member)
  if not claim then
    return nil
  end
  local texts = redis.call("HMGET", at.state, "c:" .. claim, "q:" .. claim)
  if select(2, string.match(texts[2] or "", lane_member)) == key then
    return place, claim, texts[1]
  end
end

-- lane_enter has a claim wait for a resource. ends is as in q:<claim>. Its first write needs
-- memory.
local function lane_enter(at, st, claim, r, key, ends)
  local number = redis.call("HGET", at.state, "l:" .. key)
  if not number or not lane_first(at, key, number) then
    local last = redis.call("ZREVRANGEBYSCORE", at.line, int(score_hold - 1), int(score_lanes), "WITHSCORES",
      "LIMIT", "0", "1")[2]
    number = int(math.max(tonumber(r.ticket), score_lanes, (tonumber(last) or 0) + 1))
  end
  redis.call("HSET", at.state, "l:" .. key, number, "q:" .. claim, ends .. lane_gap .. key)
  redis.call("ZADD", at.line, number, r.place .. place_mark .. claim)
  if ends ~= lane_named and ends ~= "0" then
    redis.call("ZADD", at.line, int(score_patience + ends), "p:" .. claim)
  end
  st.pool.parked = st.pool.parked + 1
  if st.touched and st.touched[key] then
    st.touched[key].number = number
  end
  lane_touch(at, st, key)
end

-- lane_end forgets a lane that has no members.
local function lane_end(at, st, key)
  redis.call("HDEL", at.state, "l:" .. key)
  redis.call("ZREM", at.line, "w:" .. key)
  if st.touched and st.touched[key] then
    st.touched[key].over, st.touched[key] = true, nil
  end
end

-- lane_leave ends what is kept of a claim whose place was in a lane and is not there any more.
-- The lane goes with its last member. One that was absent from it is not counted.
local function lane_leave(at, st, claim, place, absent)
  if #place ~= lane_width then
    return
  end
  local text = redis.call("HGET", at.state, "q:" .. claim)
  local ends, key = string.match(text or "", lane_member)
  if not absent then
    st.pool.parked = math.max(st.pool.parked - 1, 0)
  end
  if not key then
    return
  end
  redis.call("HDEL", at.state, "q:" .. claim)
  if ends ~= lane_named and ends ~= "0" then
    redis.call("ZREM", at.line, "p:" .. claim)
  end
  local number = redis.call("HGET", at.state, "l:" .. key)
  if number and not lane_first(at, key, number) then
    lane_end(at, st, key)
  else
    lane_touch(at, st, key)
  end
end

-- lane_told is where a member stands, as a reply and a restore name it: its lane in the line and
-- its place there, and then as q:<claim> has it.
local function lane_told(at, claim, r)
  local lane, place = string.match(r.place, lane_split)
  return string.format(place_told, lane, place) .. place_behind .. (redis.call("HGET", at.state, "q:" .. claim) or "")
end
