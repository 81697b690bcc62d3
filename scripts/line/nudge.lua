--- @include "wake/wake"
-- nudge tells the node of a waiter of the next deadline (ms), if that passes before the
-- node's next heartbeat brings it: at the latest half a wait lease after its last one.
local function nudge(at, r, alive, next_at)
  if next_at < alive - r.wait / 2 then
    wake(at, r.node, "next", at.name, math.max(next_at - at.ms, 0))
  end
end
