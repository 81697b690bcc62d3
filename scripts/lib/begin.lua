-- begin starts a hold with the call of its own claimant that is granted at
-- once, and returns its deadline (ms). No first grant is longer than the wait
-- lease: a longer lease, and one without end, stay unconfirmed until the
-- claimant's next call.
local function begin(at, r)
  if r.lease == 0 or r.lease > r.wait then
    r.phase = "g"
    return at.ms + r.wait
  end
  r.phase = "h"
  if r.max == 0 then
    return at.ms + r.lease
  end
  r.limit = at.ms + r.max
  return math.min(at.ms + r.lease, r.limit)
end
