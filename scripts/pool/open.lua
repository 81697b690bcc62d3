--- @include "state/fetch"
--- @include "state/open"
--- @include "state/score"
--- @include "state/int"
--- @include "pool/counts"
--- @include "pool/free"
-- pool_open opens a pool, which has three more keys, counts of its own, and the resource that the
-- claim of the call holds; it fetches what the script has not. A pool has no thin form.
local function pool_open(keys, linger, channel, name, claim, t, v, top)
  if not t then
    t, v, top = fetch(keys, claim, "pool", "r:" .. (claim or ""))
  end
  if v.thin then
    redis.call("HLEN", keys[1]) -- the server says that it is of another type
  end
  local at, st, known = open(keys, linger, channel, name, claim, t, v, top)
  at.items, at.free, at.bindings = keys[3], keys[4], keys[5]
  at.others = { at.items, at.free, at.bindings }
  st.pool, st.counts = pool_counts(v[3], st.was_used), v[3]
  at.newer = at.newer or not st.pool and 0 or nil
  if st.pool and st.form and not at.head then -- somebody has deleted the line
    st.pool.parked = 0
  end
  -- Fewer than are parked somebody else has written: nobody would look at their lanes.
  st.waiting = math.max(st.waiting, st.pool and st.pool.parked or 0)
  local held = v[4]
  if held == nil and known then
    held = redis.call("HGET", keys[1], "r:" .. claim)
  end
  st.claim, st.extra = claim, held or ""
  return at, st, known
end

-- pool_fresh is what fatten does for a pool that is not there yet: what a state that is not
-- there any more has left behind goes, and each key gets what keeps it from ever being empty: a script
-- may name it while a slot moves. See score_long: the same is true of a hash and a value.
local function pool_fresh(at)
  for _, key in ipairs(at.others) do
    if (key == at.free and redis.call("ZCARD", key) or redis.call("HLEN", key)) > 0 then
      redis.call("UNLINK", key)
    end
  end
  redis.call("HSET", at.items, "v", score_long)
  redis.call("ZADD", at.free, free_mark, "", free_mark, score_long)
  redis.call("ZREM", at.free, score_long)
  redis.call("ZADD", at.line, int(score_mark), score_long)
  redis.call("ZREM", at.line, score_long)
  redis.call("HSET", at.bindings, "v", "1")
end

-- pool_save returns the counts that save writes of a pool, nil where they are as they were. While there are resources
-- that stay, or settings of an operator, none of the keys expires.
local function pool_save(st)
  local p = st.pool
  st.cap, st.keep = 1, (p.resources > p.leaving or string.sub(p.settings, 1, 1) == "o") and 1 or 0
  local counts = pool_counts_write(p, math.max(st.used, 0))
  return counts ~= st.counts and counts or nil
end
