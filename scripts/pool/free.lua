--- @include "state/int"
-- The free resources are a sorted set by the order in which they came back: the score of each is a fence that no
-- claim gets. The first is the head, the last the tail. The member "" stands behind all of them,
-- so that the set is never empty: no resource is "".
local free_mark = "9007199254740991"

-- free_push puts a resource at the tail, also one that is there already.
local function free_push(at, st, key)
  st.fence = math.max(st.fence + 1, at.us)
  redis.call("ZADD", at.free, int(st.fence), key, free_mark, "")
end

-- free_drop takes a resource out. It returns whether it was there.
local function free_drop(at, key)
  local dropped = redis.call("ZREM", at.free, key)
  return dropped == 1
end

-- free_ends returns the two that come first by the policy; nil or "" where there are none.
local function free_ends(at, policy)
  if policy == "m" then
    local last = redis.call("ZRANGE", at.free, "-3", "-2")
    return last[2] or last[1], last[2] and last[1]
  end
  return unpack(redis.call("ZRANGE", at.free, "0", "1"))
end
