--- @include "state/score"
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

-- due_items ends rests, or lets leave what has expired. The line has nothing of that any more.
local function due_items(at, st, budget, from)
  for _, key in ipairs(due_read(at, budget, from)) do
    local i, bad = item_read(at, key)
    if bad then
      damaged(at, st, key)
    elseif i and from == score_rest then
      i.ends, i.was.ends, i.reason = 0, 0, i.pend > 0 and i.reason or ""
    elseif i then
      i.leaving, i.was.expiry = true, 0
    end
    if i then
      settle(at, st, key, i)
    end
  end
end

local due_what = "[opwtexu]"

-- due_last says what stands last in the line, before its mark.
local function due_last(at)
  local member = redis.call("ZRANGE", at.line, "-2", "-2")[1]
  return string.sub(member or "", 1, 1)
end

-- due_first says what stands first in the line from a score on, which is a text: what may be due is due_what; d
-- and - are behind.
local function due_first(at, from)
  local member = redis.call("ZRANGEBYSCORE", at.line, from, "+inf", "LIMIT", "0", "1")[1]
  return string.sub(member or "", 1, 1)
end
