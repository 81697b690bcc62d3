--- @include "lib/first"
--- @include "lib/bands"
--- @include "lib/record"
--- @include "lib/soonest"
--- @include "lib/wake"
-- hasten tells the node of the first in line of a deadline that this run has
-- set, when it is the earliest and passes before that node's next heartbeat
-- brings it: at the latest half a wait lease after its last one. Where another claim
-- than before is first in line, deadline is true: it may know of none. Whoever has
-- read the first in line already gives its claim, record and liveness deadline, and
-- who knows it the earliest deadline.
local function hasten(at, st, deadline, out, claim, r, alive, next_at)
  next_at = st.waiting > 0 and deadline and (next_at or soonest(at))
  if not next_at or deadline ~= true and deadline ~= next_at then
    return
  end
  if not claim then
    claim = first(at.line)
    local text = claim and redis.call("HGET", at.state, "c:" .. claim)
    r = text and record(text)
    if not r then
      return
    end
    alive = (tonumber(redis.call("ZSCORE", at.line, "a:" .. claim)) or 0) - bands().alive
  end
  if next_at < alive - r.wait / 2 then
    wake(out, at.channel .. r.node, "next", at.name, math.max(next_at - at.ms, 0))
  end
end
