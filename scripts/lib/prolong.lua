--- @include "lib/bands"
--- @include "lib/endless"
--- @include "lib/terms"
-- prolong takes a call of the own of an entry e of a group s: it confirms what
-- was granted, adds what is still to be added, and moves the common deadline.
-- Only the outermost entry's beat renews; a renewal lowers nothing, but for what
-- lies further off than lease and extensions explain: then the clock went back.
-- Entries whose record has changed are marked.
local function prolong(at, st, s, e, mode)
  local outer, forever = s.entries[1], bands().forever
  local r = outer.r
  if mode == "check" then
    return
  end
  local starts = e == outer and r.phase == "g"
  local anew = starts or mode == "renew" or (e == outer and r.kind == "r" and r.phase ~= "d")
  if starts then
    local limit = r.max > 0 and at.ms + r.max or 0
    for _, f in ipairs(s.entries) do
      if limit > 0 and (f.r.limit == 0 or f.r.limit > limit) then
        f.r.limit = limit
        terms(f.r, r.kind, r.lease, f.r.max > 0 and f.r.max or r.max)
      end
      if f.r.phase == "g" then
        f.r.phase = "h"
        st.forever = st.forever + (endless(f.r) and 1 or 0)
      end
      f.changed = true
    end
  end
  if anew and r.lease == 0 then
    s.own, s.deadline = forever, forever
  elseif anew then
    local own = at.ms + r.lease
    s.own = math.min(math.max(s.own, own), own + s.more)
    s.deadline = math.min(math.max(s.deadline, own), own + s.more)
  end
  local more, call = string.match(mode, "^extend (%d+) (%S+)$")
  more = call and call ~= s.call and tonumber(more) or 0
  if s.deadline < forever then
    s.own, s.deadline = s.own + more, s.deadline + more + e.pending
    s.more = s.more + more + e.pending
    e.ext, s.extended = e.ext + e.pending, s.extended + e.pending
  end
  s.call, e.pending = call or s.call, 0
  if mode == "detach" then
    -- Who takes it up knows nothing of what it extended: that stays.
    e.r.phase, e.changed, e.ext = "d", true, 0
  end
end
