--- @include "pool/item"
--- @include "pool/free"
--- @include "pool/settle"
--- @include "pool/binding"
--- @include "pool/settings"
--- @include "pool/damaged"
-- pick_fits returns the item of a resource that a claim may get, nil for none, and whether
-- it dropped the resource, which had expired, or is damaged and was free.
local function pick_fits(at, st, w, key)
  if not key or key == w.other then
    return nil, false
  end
  local i, dropped = item_read(at, key)
  if dropped then
    dropped = damaged(at, st, key)
  elseif i and i.listed and i.expiry > 0 and i.expiry <= at.ms then
    i.leaving, dropped = true, true
    redis.call("ZREM", at.line, "x:" .. key) -- first, as it needs no memory
    settle(at, st, key, i)
  end
  return i and i.listed and not (w.alone and i.was.leased) and i or nil, dropped
end

-- pick_next returns the free resource that a claim gets by the policy, nil for none.
local function pick_next(at, w)
  for _ = 1, w.policy == "r" and 8 or 0 do
    local drawn = redis.call("ZRANDMEMBER", at.free)
    if drawn and drawn ~= "" and drawn ~= w.other then
      return drawn
    end
  end
  local key, beside = free_ends(at, w.policy)
  if key == w.other then
    key = beside
  end
  return key ~= "" and key or nil
end

-- pick chooses the free resource that a claim gets: the one that it is bound to if that is
-- free, else by the policy. It returns nil for none, or these fields: key, item, and wants.
-- What it drops on the way, because it had expired or is damaged, is within the budget.
-- With w.resource it is that one or none; with w.alone nobody may hold it; it is never w.other.
local function pick(at, st, w, budget)
  w.policy = settings_of(st).policy
  if w.bind ~= "" then
    w.bound, w.until_then = binding_of(at, w.bind)
  end
  local key, i, dropped = w.resource or w.bound
  if st.pool.free > 0 and budget.left > 0 then
    i, dropped = pick_fits(at, st, w, key)
    budget.left = budget.left - (dropped and 1 or 0)
  end
  while not i and not w.resource and st.pool.free > 0 and budget.left > 0 do
    key = pick_next(at, w)
    i, dropped = pick_fits(at, st, w, key)
    if not i and not dropped then
      if not key or key == w.other or not free_drop(at, key) then
        break
      end
      st.pool.free, dropped = st.pool.free - 1, true -- its item is gone, or says that it is not free
    end
    budget.left = budget.left - (dropped and 1 or 0)
  end
  return i and { key = key, item = i, wants = w } or nil
end
