-- begin starts a hold with the call of its own claimant that is granted at
-- once, and returns its deadline (ms). No first grant is longer than the wait
-- lease: a longer fixed lease, and one without end, stay unconfirmed until the
-- claimant's next call.
local function begin(at, r)
  if r.lease == 0 or (r.kind == "f" and r.lease > r.wait) then
    r.phase = "g"
    return at.ms + r.wait
  end
  r.phase = "h"
  local deadline = at.ms + math.min(r.lease, r.wait)
  if r.max > 0 then
    r.limit = at.ms + r.max
    deadline = math.min(deadline, r.limit)
  end
  return deadline
end
