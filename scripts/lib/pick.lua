--- @include "lib/item"
--- @include "lib/settle"
--- @include "lib/bound"
--- @include "lib/damaged"
--- @include "lib/unlink"
-- pick chooses the free resource that a claim gets: the one that it is bound to if
-- that is free, else by its policy. It returns its key and item, nil for none, and how
-- many it dropped on the way because they had expired or are damaged, at most budget. With w.only it
-- is that one or none, and nobody may hold it; w.other is one that it must not be.
local function pick(at, st, w, budget)
  local drops = 0
  local function fits(key)
    if not key or key == w.other then
      return nil
    end
    local i, bad = item(at, key)
    if bad then
      drops = drops + 1
      damaged(at, st, key)
    elseif i and i.listed and i.expiry > 0 and i.expiry <= at.ms then
      i.leaving, drops = true, drops + 1
      redis.call("ZREM", at.line, "x:" .. key) -- first, as it needs no memory
      settle(at, st, key, i)
    end
    return i and i.listed and not (w.only and i.was.leased) and i or nil
  end
  local function step(key)
    local to = redis.call("HGET", at.free, "n" .. key)
    return (not to or to == "") and redis.call("HGET", at.free, "p" .. key) or to
  end
  local function choose()
    local key = redis.call("HGET", at.free, w.policy == "m" and "p" or "n")
    for _ = 1, w.policy == "r" and 8 or 0 do
      local drawn = string.sub(redis.call("HRANDFIELD", at.free), 2)
      if drawn ~= "" and drawn ~= w.other then
        key = drawn
        break
      end
    end
    if key == w.other and key ~= "" then
      key = step(key)
    end
    return key ~= "" and key or nil
  end

  if w.bind ~= "" then
    w.bound, w.until_then = bound(at, w.bind)
  end
  local wanted = w.only or w.bound
  local i = st.pool.free > 0 and drops < budget and fits(wanted)
  if i then
    return wanted, i, drops
  end
  while not w.only and st.pool.free > 0 and drops < budget do
    local before, key = drops, choose()
    i = fits(key)
    if i then
      return key, i, drops
    elseif drops == before then
      if not key or key == w.other or not unlink(at, key) then
        break
      end
      st.pool.free, drops = st.pool.free - 1, drops + 1 -- its item is gone, or says that it is not free
    end
  end
  return nil, nil, drops
end
