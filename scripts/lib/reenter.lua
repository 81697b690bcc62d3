--- @include "lib/bands"
--- @include "lib/counted"
--- @include "lib/pack"
--- @include "lib/terms"
--- @include "lib/move"
--- @include "lib/save"
-- reenter grants one more entry to the owner that holds a lock, and returns it.
-- It has the outermost one's terms, so that it goes on as that one would if it
-- outlives it, and ends with it at the latest. An entry that extends adds its own
-- lease to the common deadline, for now no more than its wait lease: what is
-- longer waits for its claimant's next call.
local function reenter(at, st, s, claim, r, extends)
  local outer = s.entries[1].r
  local e = {
    claim = claim, kind = extends and "e" or "w", ext = 0, at = at.ms, pending = 0, call = "-",
    r = r, held = 0, changed = true, fresh = outer.phase ~= "g" and s.deadline > at.ms + r.wait,
  }
  local limit = r.max > 0 and at.ms + r.max or 0
  if outer.limit > 0 and (limit == 0 or outer.limit < limit) then
    limit = outer.limit
  end
  if extends and s.deadline < bands().forever then
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
  s.count = s.count + 1
  s.entries[#s.entries + 1] = e
  terms(r, outer.kind, outer.lease, limit > 0 and math.max(limit - at.ms, 1) or outer.phase == "g" and outer.max or 0)
  r.limit, r.fence, r.granted, r.phase = limit, outer.fence, at.ms, (outer.phase == "g" or e.fresh) and "g" or "h"
  st.forever = st.forever + counted(r)
  st.used = st.used + 1
  local scores, fields, furthest = move(st, s)
  redis.call("ZADD", at.line, unpack(scores))
  save(at, st, furthest, unpack(fields))
  return e
end
