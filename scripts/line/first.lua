--- @include "state/score"
--- @include "line/place"
-- first returns the first claim in line, its place and its lane, or nil. Behind the line come those
-- who wait for one resource of a pool.
local function first(line)
  local head = redis.call("ZRANGE", line, "0", "0", "WITHSCORES")
  local place, claim = string.match(head[1] or "", place_member)
  if claim and head[2] + 0 <= score_last_lane then
    return claim, place, tonumber(head[2])
  end
  return nil
end

-- in_line is how many stand in line: in a pool there are others, who wait for one resource.
local function in_line(st)
  return st.pool and st.waiting - st.pool.parked or st.waiting
end
