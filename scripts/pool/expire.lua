--- @include "state/score"
--- @include "state/int"
--- @include "pool/due"
--- @include "pool/lanes"
-- pool_due ends what has passed: rests and expiries, then the patience of those who wait for a resource,
-- then bindings, and what operators have changed.
local function pool_due(at, st, budget)
  local last = due_last(at)
  if last ~= "d" and not string.find(last, due_what) then
    return
  end
  local first = due_first(at, int(score_op))
  if not string.find(first, due_what) then
    return
  end
  local what = first -- the first and the last say which there may be
  if string.find(last, "[opwt]") then
    what = ""
  elseif string.find(first, "[opwt]") then
    what = due_first(at, int(score_rest))
  end
  if what == "e" then
    due_items(at, st, budget, score_rest)
  end
  if string.find(what, "[ex]") and last ~= "e" then
    due_items(at, st, budget, score_expiry)
  end
  if st.pool.parked > 0 then
    local left = budget.left
    lanes_due(at, st, budget)
    budget.swept = budget.swept - left + budget.left -- nothing of that has expired
  end
  if string.find(what, "[exu]") and string.find(last, "[ud]") then
    for _, name in ipairs(due_read(at, budget, score_bind)) do
      redis.call("HDEL", at.bindings, "b" .. name)
    end
  end
  -- An operator's call notes one change. It was in nobody's way, and takes nothing of the budget.
  for _, target in ipairs(first == "o" and due_read(at, { left = 2 }, score_op) or {}) do
    redis.call("HDEL", at.state, "o:" .. target)
  end
end

-- pool_pending says whether something of the pool has a moment in the line, or is damaged.
local function pool_pending(at)
  return due_first(at, int(score_op)) ~= "-"
end
