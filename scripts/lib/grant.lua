--- @include "lib/int"
--- @include "lib/begin"
-- grant gives a claim what it asks for, with the call of its own claimant that is
-- under way, and returns the hold's deadline (ms). The state and the record are
-- still to be saved.
local function grant(at, st, claim, r)
  st.fence = math.max(st.fence + 1, at.us)
  st.used = st.used + r.weight
  r.fence, r.granted = int(st.fence), at.ms
  local deadline = begin(at, r)
  redis.call("ZADD", at.line, int(deadline), "h:" .. claim)
  return deadline
end
