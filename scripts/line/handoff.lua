--- @include "state/score"
--- @include "state/int"
--- @include "state/record"
--- @include "line/place"
--- @include "line/deadline"
--- @include "wake/wake"
-- handoff grants to the first in line, again and again, while what that claim asks for is free and
-- the budget lasts. A grant keeps the deadline that the waiter had: only the waiter's own call may
-- extend it. head_left says that the first in line has left: the next one may not know yet what it
-- waits for. While the name is paused nobody is granted anything.
local function handoff(at, st, budget, head_left)
  if st.waiting <= 0 then
    return
  end
  if st.pause > 0 then
    notify(at, st, head_left or st.moved)
    return
  end
  while st.waiting > 0 and budget.left > 0 do
    local waiting = st.waiting
    local claim, r, what = kind_next(at, st, budget)
    head_left = head_left or st.waiting < waiting
    if not what then
      if budget.left > 0 then
        notify(at, st, head_left or st.moved, claim, r)
        return
      end
      break
    end
    local got, field
    st.fence = math.max(st.fence + 1, at.us)
    r.fence = string.format(values_fence, st.fence)
    if kind_deal then
      got, field = kind_deal(at, st, claim, what)
    end
    local alive, place = r.alive, r.place
    st.used, st.due = st.used + r.weight, st.due and (st.due == 0 and alive or math.min(st.due, alive))
    st.waiting, st.busy = st.waiting - 1, at.ms
    r.phase, r.granted = "g", string.format(values_ms, at.ms)
    redis.call("ZREM", at.line, place .. place_mark .. claim) -- needs no memory: a full server lets the rest pass
    if kind_vacate then
      kind_vacate(at, st, claim, place)
    end
    redis.call("ZADD", at.line, int(score_hold + alive), "h:" .. claim)
    redis.call("HSET", at.state, unpack({ "c:" .. claim, record_write(r), field, got }))
    wake(at, r.node, "granted", at.name, claim, r.fence, string.format(wake_lasts, alive - at.ms), got or "", r.secret)
    head_left, budget.left = true, budget.left - 1
  end
  if st.waiting > 0 then
    notify(at, st, at.ms) -- the caller, who has to sweep, may die
  end
end
