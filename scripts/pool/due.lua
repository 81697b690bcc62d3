--- @include "state/band"
--- @include "state/int"
--- @include "pool/item"
--- @include "pool/settle"
--- @include "pool/damaged"
-- due_read takes what has passed out of a range of the line, within the budget, and returns
-- what it is about.
local function due_read(at, budget, from)
  local keys = {}
  if budget.left > 0 then
    local members = redis.call("ZRANGEBYSCORE", at.line, int(from), int(from + at.ms), "LIMIT", "0", int(budget.left))
    if members[1] then
      redis.call("ZREM", at.line, unpack(members))
    end
    for n, member in ipairs(members) do
      keys[n] = string.sub(member, 3)
    end
    budget.left = budget.left - #members
  end
  return keys
end

-- due ends rests, lets leave what has expired, and forgets bindings that have ended.
local function due(at, st, budget)
  for from = band_rest, band_expiry, band_expiry - band_rest do
    for _, key in ipairs(due_read(at, budget, from)) do
      local i, bad = item_read(at, key)
      if bad then
        damaged(at, st, key)
      elseif i and from == band_rest then
        i.ends, i.reason = 0, i.pend > 0 and i.reason or ""
      elseif i then
        i.leaving = true
      end
      if i then
        settle(at, st, key, i)
      end
    end
  end
  for _, name in ipairs(due_read(at, budget, band_bind)) do
    redis.call("HDEL", at.bindings, "b" .. name)
  end
end
