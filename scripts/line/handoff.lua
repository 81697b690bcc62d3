--- @include "state/int"
--- @include "state/record"
--- @include "line/tide"
--- @include "wake/wake"
-- handoff grants to whoever is next for as long as what that one asks for is there, within
-- the budget. A grant keeps the deadline that the waiter had: only its own call may
-- lengthen it. parted says that the first in line has left before: the next one may not
-- know yet what it waits for.
local function handoff(at, st, budget, parted)
  while st.waiting > 0 and budget.left > 0 do
    local waiting = st.waiting
    local claim, r, alive, what = kind_next(at, st, budget)
    parted = parted or st.waiting < waiting
    if not what then
      if budget.left > 0 then
        hasten(at, st, parted, claim, r, alive)
      end
      return
    end
    local got, field
    if kind_deal then
      got, field = kind_deal(at, st, claim, what)
    end
    st.fence = math.max(st.fence + 1, at.us)
    st.used, st.low = st.used + r.weight, nil
    st.waiting = st.waiting - 1
    r.phase, r.fence, r.granted = "g", int(st.fence), at.ms
    -- In this order: a full server refuses a first write that grows, and a
    -- line that is emptied in between is a new key, which never expires.
    redis.call("ZREM", at.line, "q:" .. claim)
    redis.call("ZADD", at.line, int(alive), "h:" .. claim)
    redis.call("ZREM", at.line, "a:" .. claim)
    redis.call("HSET", at.state, unpack({ "c:" .. claim, record_write(r), field, got }))
    wake(at, r.node, "granted", at.name, claim, st.fence, alive - at.ms, got or "", r.secret)
    parted, budget.left = true, budget.left - 1
  end
end
