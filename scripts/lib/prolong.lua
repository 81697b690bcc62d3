--- @include "lib/bands"
--- @include "lib/counted"
--- @include "lib/endless"
-- prolong takes a call of the own of an entry e of a group s: it confirms what
-- was granted, adds what is still to be added, and moves the common deadline.
-- Only the outermost entry's beat renews; a renewal lowers nothing, but for what
-- lies further off than lease and extensions explain: then the clock went back.
-- "beat <ms>" is a beat of a node that is in a swarm, with its zombie limit: the record
-- of a hold without end says what the last beat said. Entries whose record has changed
-- are marked.
local function prolong(at, st, s, e, mode)
  local outer, forever = s.entries[1], bands().forever
  local r = outer.r
  if e.fresh then
    st.forever = st.forever - counted(e.r)
    e.fresh, e.r.phase, e.changed = false, "h", true
    st.forever = st.forever + counted(e.r)
  end
  local starts = e == outer and r.phase == "g"
  -- Nothing long before the outermost one has spoken.
  local anew = starts or (mode == "renew" and r.phase ~= "g") or (e == outer and r.kind == "r" and r.phase ~= "d")
  if starts then
    for _, f in ipairs(s.entries) do
      st.forever = st.forever - counted(f.r)
      if f.r.max > 0 and f.r.limit == 0 then
        f.r.limit = at.ms + f.r.max
      end
      if f.r.phase == "g" then
        f.r.phase = "h"
      end
      st.forever = st.forever + counted(f.r)
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
  more = call and call ~= e.call and tonumber(more) or 0
  if s.deadline < forever then
    s.own, s.deadline = s.own + more, s.deadline + more + e.pending
    s.more = s.more + more + e.pending
    e.ext, s.extended = e.ext + e.pending, s.extended + e.pending
  end
  e.call, e.pending = call or e.call, 0
  local zombie = string.match(mode, "^beat ?(%d*)$")
  if zombie and endless(e.r) and e.r.zombie ~= zombie then
    e.r.zombie, e.changed = zombie, true
  end
  if mode == "detach" then
    -- Who takes it up knows nothing of what it extended: that stays.
    st.forever = st.forever - counted(e.r)
    if e.r.max > 0 and e.r.limit == 0 then
      e.r.limit = at.ms + e.r.max -- detached before the outermost one has spoken
    end
    e.r.phase, e.changed, e.ext = "d", true, 0
    st.forever = st.forever + counted(e.r)
  end
end
