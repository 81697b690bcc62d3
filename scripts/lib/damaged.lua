--- @include "lib/bands"
--- @include "lib/unlink"
-- damaged takes a resource whose item cannot be read off the list of free ones, so that
-- nobody gets it. It leaves the item as it is, and notes the resource in the line, for
-- the next sweep to tell of it, once; at.met says that there is one to tell of.
-- It still counts among the resources, and among the leased ones if it was leased:
-- ended says that a hold of it has ended, and then it does not any more. Who else holds
-- it, pool_mend finds out.
local function damaged(at, st, key, ended)
  local p, damage = st.pool, bands().damage
  if unlink(at, key) then
    p.free = p.free - 1
  end
  local known = tonumber(redis.call("ZSCORE", at.line, "d:" .. key))
  local score = known or damage
  if ended and (score - damage) % 2 == 0 then
    p.leased, score = math.max(p.leased - 1, 0), score + 1
  end
  if score ~= known then
    redis.call("ZADD", at.line, score, "d:" .. key)
  end
  at.met = at.met or not known
end
