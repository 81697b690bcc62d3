--- @include "lib/wants"
--- @include "lib/pick"
--- @include "lib/take"
-- give returns what a hand-off of a pool calls for each claim: it gives it a resource.
local function give(at, st)
  return function(claim, r, budget)
    local w = wants(r.tail)
    local key, i, drops = pick(at, st, w, budget)
    if key then
      take(at, st, claim, w, key, i)
      redis.call("HSET", at.state, "r:" .. claim, key)
    end
    return key, drops
  end
end
