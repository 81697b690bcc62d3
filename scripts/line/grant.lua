--- @include "state/score"
--- @include "state/int"
-- grant gives a claim what it asks for, with the call of its own claimant that is under
-- way, and returns the hold's deadline (ms). The state and the record are still to be
-- saved. No first grant is longer than the wait lease: a longer lease, and one without
-- end, stay unconfirmed until the claimant's next call.
local function grant(at, st, claim, r)
  st.fence = math.max(st.fence + 1, at.us)
  r.fence, r.granted = string.format(values_fence, st.fence), string.format(values_ms, at.ms)
  local deadline = at.ms + r.wait
  if r.lease == 0 or r.lease > r.wait then
    r.phase, st.busy = "g", at.ms
  else
    r.phase, deadline = "h", at.ms + r.lease
    if r.max > 0 then
      r.limit = at.ms + r.max
      deadline = math.min(deadline, r.limit)
    end
  end
  st.used, st.due = st.used + r.weight, st.due and (st.due == 0 and deadline or math.min(st.due, deadline))
  redis.call("ZADD", at.line, int(score_hold + deadline), "h:" .. claim)
  return deadline
end
