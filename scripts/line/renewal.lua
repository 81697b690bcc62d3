--- @include "state/score"
--- @include "line/batch"
-- renew_hold takes an own call of a hold that has a deadline of its own. The first call after a grant
-- confirms it, and starts a fixed lease and the maximum hold, once. After that a hold that renews by
-- itself gets its lease anew; a fixed or a detached one only by the mode renew.
local function renew_hold(at, st, claim, r, mode, m)
  local starts = r.phase == "g"
  if starts then
    r.phase, r.changed = "h", true
    r.limit = r.max > 0 and at.ms + r.max or 0
    if r.lease == 0 and r.max == 0 then
      st.forever = st.forever + 1
    end
  end
  local anew = starts or mode == "renew" or (r.kind == "r" and r.phase ~= "d")
  if mode == "detach" and r.phase ~= "d" then
    r.phase, r.changed = "d", true
  end
  local ends = r.held
  if anew then
    ends = r.lease == 0 and score_forever or at.ms + r.lease
    if r.limit > 0 then
      ends = math.min(ends, r.limit)
    end
  end
  batch_hold(m, claim, r, ends)
end
