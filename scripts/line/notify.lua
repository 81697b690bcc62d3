--- @include "wake/wake"
-- notify_node tells the node of a waiter of the next deadline (ms), if that passes before the
-- node's next heartbeat brings it: at the latest half a wait lease after its last one. One that
-- has passed says that there is something to sweep. It returns whether it has told the node.
local function notify_node(at, r, next_at)
  if next_at <= at.ms or next_at < r.alive - r.wait / 2 then
    wake(at, r.node, "next", at.name, math.max(next_at - at.ms, 0))
    return true
  end
  return false
end
