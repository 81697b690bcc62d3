--- @include "lib/first"
--- @include "lib/bands"
--- @include "lib/record"
--- @include "lib/soonest"
--- @include "lib/wake"
-- hasten tells the node of the first in line of a deadline that this run has
-- set, when it is the earliest and passes before that node's next heartbeat
-- brings it: at the latest half a wait lease after its last one. Whoever has
-- read the first in line already gives its claim, record and liveness deadline.
local function hasten(at, st, deadline, out, claim, r, alive)
  if st.waiting <= 0 or not deadline or soonest(at.line) ~= deadline then
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
  if deadline < alive - r.wait / 2 then
    wake(out, at.channel .. r.node, "next", at.name, deadline - at.ms)
  end
end
