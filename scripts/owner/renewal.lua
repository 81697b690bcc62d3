--- @include "state/score"
--- @include "line/forever"
--- @include "owner/live"
-- renew_entry takes an own call of an entry of the group that was read: it confirms the grant, adds
-- what is still to be added, and moves the common deadline. Only the outermost entry's beat renews.
-- A renewal lowers no deadline but one that is further off than lease and extensions allow: then the
-- clock went back. "beat <ms>" is a beat of a node that is in a swarm, with its zombie limit, which
-- goes into the record of a hold without end. Records that the step has to write are marked.
local function renew_entry(at, st, claim, _, mode)
  local s, e = st.group, find_entry(st.group, claim)
  local outer = s.entries[1]
  local r = outer.r
  if e.fresh then
    st.forever = st.forever - forever_count(e.r)
    e.fresh, e.r.phase, e.r.changed = false, "h", true
    st.forever = st.forever + forever_count(e.r)
  end
  local starts = e == outer and r.phase == "g"
  -- Until its own first call the outermost entry has no more than its wait lease.
  local anew = starts or (mode == "renew" and r.phase ~= "g") or (e == outer and r.kind == "r" and r.phase ~= "d")
  if starts then
    for _, f in ipairs(s.entries) do
      st.forever = st.forever - forever_count(f.r)
      if f.r.max > 0 and f.r.limit == 0 then
        f.r.limit = at.ms + f.r.max
      end
      if f.r.phase == "g" then
        f.r.phase = "h"
      end
      st.forever = st.forever + forever_count(f.r)
      f.r.changed = true
    end
  end
  if anew and r.lease == 0 then
    s.own, s.deadline = score_forever, score_forever
  elseif anew then
    local own = at.ms + r.lease
    s.own = math.min(math.max(s.own, own), own + s.more)
    s.deadline = math.min(math.max(s.deadline, own), own + s.more)
  end
  local more, call = string.match(mode, "^extend (%d+) (%S+)$")
  more = call and call ~= e.call and tonumber(more) or 0
  if s.deadline < score_forever then
    s.own, s.deadline = s.own + more, s.deadline + more + e.pending
    s.more = s.more + more + e.pending
    e.ext, s.extended = e.ext + e.pending, s.extended + e.pending
  end
  e.call, e.pending = call or e.call, 0
  local zombie = string.match(mode, "^beat ?(%d*)$") or string.match(mode, "^want ?(%d*)$")
  if zombie and e.r.lease == 0 and e.r.max == 0 and e.r.number ~= zombie then
    e.r.number, e.r.changed = zombie, true
  end
  if mode == "detach" then
    -- The node that takes it up does not know what it extended: that stays.
    st.forever = st.forever - forever_count(e.r)
    if e.r.max > 0 and e.r.limit == 0 then
      e.r.limit = at.ms + e.r.max -- detached before the outermost entry's own call
    end
    e.r.phase, e.r.changed, e.ext = "d", true, 0
    st.forever = st.forever + forever_count(e.r)
  end
end
