--- @include "lib/bands"
--- @include "lib/endless"
-- lengthen answers a call of the holder's own: it returns the deadline that the
-- hold has from now on (ms), as a score. The first such call after a grant
-- confirms it, and starts a fixed lease and the maximum hold, once. After that a
-- hold that renews by itself gets its lease anew; a fixed one only where the
-- holder asks for it in so many words, and a detached one likewise.
local function lengthen(at, st, r, deadline, mode)
  local starts = r.phase == "g"
  if starts then
    r.phase = "h"
    r.limit = r.max > 0 and at.ms + r.max or 0
    if endless(r) then
      st.forever = st.forever + 1
    end
  end
  local anew = starts or mode == "renew" or (r.kind == "r" and r.phase ~= "d")
  if mode == "detach" then
    r.phase = "d"
  end
  if not anew then
    return deadline
  end
  local ends = r.lease == 0 and bands().forever or at.ms + r.lease
  if r.limit > 0 then
    ends = math.min(ends, r.limit)
  end
  return ends
end
