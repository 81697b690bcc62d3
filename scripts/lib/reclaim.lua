--- @include "lib/bands"
--- @include "lib/sweep"
--- @include "lib/wants"
--- @include "lib/giveback"
--- @include "lib/item"
--- @include "lib/settle"
--- @include "lib/damaged"
-- reclaim is sweep for a pool: the resources of what it drops go back, rests that
-- have ended end, and what has expired leaves, at most budget entries together. It
-- returns how many that were.
local function reclaim(at, st, budget)
  local band = bands()
  local total = sweep(at, st, budget, function(claim, r, deadline)
    local key = redis.call("HGET", at.state, "r:" .. claim)
    if key then
      local w = r and wants(r.tail) or nil
      giveback(at, st, claim, key, w, w and w.cooldown > 0 and deadline + w.cooldown or 0, "")
    end
  end)
  local function due(from)
    local keys = {}
    if total < budget then
      local members = redis.call("ZRANGEBYSCORE", at.line, from, from + at.ms, "LIMIT", 0, budget - total)
      if members[1] then
        redis.call("ZREM", at.line, unpack(members))
      end
      for n, member in ipairs(members) do
        keys[n] = string.sub(member, 3)
      end
      total = total + #members
    end
    return keys
  end
  local function read(key)
    local i, bad = item(at, key)
    if bad then
      damaged(at, st, key)
    end
    return i
  end
  for _, key in ipairs(due(band.rest)) do
    local i = read(key)
    if i then
      i.ends, i.reason = 0, i.pend > 0 and i.reason or ""
      settle(at, st, key, i)
    end
  end
  for _, key in ipairs(due(band.expiry)) do
    local i = read(key)
    if i then
      i.leaving = true
      settle(at, st, key, i)
    end
  end
  for _, name in ipairs(due(band.bind)) do
    redis.call("HDEL", at.bindings, "b" .. name)
  end
  return total
end
