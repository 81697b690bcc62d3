--- @include "state/score"
--- @include "state/int"
--- @include "pool/free"
-- damaged takes a resource whose item cannot be read out of the free ones, so that
-- nobody gets it. It leaves the item as it is, and notes the resource in the line, for
-- the next sweep to tell of it, once.
-- It still counts among the resources, and among the leased ones if it was leased:
-- ended says that a hold of it has ended, and then it does not any more. Who else holds
-- it, pool_mend finds out. It returns whether the resource was among the free.
local function damaged(at, st, key, ended)
  local p = st.pool
  local known = tonumber(redis.call("ZSCORE", at.line, "d:" .. key))
  local score = known or score_damage
  if ended and (score - score_damage) % 2 == 0 then
    p.leased, score = math.max(p.leased - 1, 0), score + 1
  end
  if score ~= known then
    redis.call("ZADD", at.line, int(score), "d:" .. key)
  end
  local listed = free_drop(at, key)
  p.free = listed and p.free - 1 or p.free
  st.met = st.met or not known
  return listed
end
