--- @include "state/score"
--- @include "state/record"
--- @include "line/forever"
--- @include "line/batch"
--- @include "owner/group"
--- @include "owner/deadline"
-- reenter grants one more entry to the owner that holds a lock. It returns the entry, and
-- a batch whose fields are still to be saved. The entry has the outermost entry's terms, so that it
-- goes on in the same way if it outlives that one, and ends no later. An entry that extends adds its
-- own lease to the common deadline: no more than its wait lease now, the rest with its claimant's
-- next call.
local function reenter(at, st, s, claim, r, extends)
  local outer, m = s.entries[1].r, batch()
  local e = group_entry(claim, extends and "e" or "w", 0, at.ms, 0, "-",
    outer.phase ~= "g" and s.deadline > at.ms + r.wait)
  local limit = r.max > 0 and at.ms + r.max or 0
  if outer.limit > 0 and (limit == 0 or outer.limit < limit) then
    limit = outer.limit
  end
  if extends and s.deadline < score_forever then
    local whole = r.lease
    if r.max > 0 and (whole == 0 or r.max < whole) then
      whole = r.max
    end
    e.ext = math.min(whole, r.wait)
    e.pending = whole - e.ext
    s.deadline, s.more, s.extended = s.deadline + e.ext, s.more + e.ext, s.extended + e.ext
    s.last, s.extended_at = whole, at.ms
  elseif extends then
    s.last, s.extended_at = r.lease, at.ms
  else
    s.worked_at = at.ms
  end
  s.count, e.r = s.count + 1, r
  s.entries[#s.entries + 1] = e
  local max = limit > 0 and math.max(limit - at.ms, 1) or outer.phase == "g" and outer.max or 0
  record_terms(r, outer.kind, outer.lease, max)
  r.limit, r.fence, r.granted = limit, outer.fence, string.format(values_ms, at.ms)
  r.phase = (outer.phase == "g" or e.fresh) and "g" or "h"
  st.forever = st.forever + forever_count(r)
  st.used = st.used + 1
  set_deadlines(st, s, m)
  batch_write(at, st, m)
  return e, m
end
