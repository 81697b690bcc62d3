--- @include "state/fatten"
--- @include "state/touch"
--- @include "state/save"
--- @include "state/revision"
--- @include "state/pause"
--- @include "line/expire"
--- @include "line/handoff"
--- @include "line/sooner"
--- @include "wake/publish"
-- pause_apart answers a call that is part of a pause of all names, or of the end of one, where that leaves the
-- name alone: somebody has decided who knew of this notice, or of a later one; there is no such pause to end; or a
-- walk finds the name idle. It writes nothing.
local function pause_apart(at, st, p, lasts, by, notice)
  if p.notice >= notice or lasts == 0 and (st.pause == 0 or p.all <= at.ms) then
    return { "kept", math.max(st.pause - at.ms, 0), st.used, st.waiting, 0 }
  elseif lasts > 0 and by == "walk" and st.used <= 0 and st.waiting <= 0 then
    return { "idle" }
  end
end

-- pause_set sets when the pauses of a name end: its own, or as all that of all names. An end of its own, which is
-- 0, excepts the name from the pause of all names that the caller knows of.
local function pause_set(at, st, p, all, ends, reason, notice)
  if st.pause == 0 then
    p.own, p.all = 0, 0 -- they are over, whatever the clock says
  end
  if all then
    p.all, p.why_all, p.notice = ends, reason, notice
  else
    p.own, p.why = ends, reason
    if ends == 0 then
      p.all, p.why_all, p.notice = 0, "", notice
    end
  end
  st.pause = math.max(p.own, p.all)
  if st.pause <= at.ms then
    st.pause = 0
  end
end

-- pause has nothing granted of a name for so long (ms), or ends its pauses (0), and hands on then. stamp is the
-- revision that the caller has seen, and by the id of the call; or by is walk or first, of a call that is part
-- of a pause of all names, or of the end of that alone, and notice the number of that one's notice. The reply is
--   status, left_ms, held, waiting, flags
--   paused, unpaused  what the name is now
--   kept              it was left as it is
-- or idle. flags are as in line/reply. ended, nil for none, is what the kind does where a pause has ended:
-- of a pool, for those who wait for one resource.
local function pause(at, st, lasts, reason, stamp, by, notice, ended)
  if at.newer then
    return { "incompatible", at.newer }
  end
  local p, all, late, done = pause_read(at, st), by == "walk" or by == "first"
  if all then
    late = pause_apart(at, st, p, lasts, by, notice)
  else
    late, done = revision_stale(at, st, "pause", stamp, by)
    if late then
      late[4] = pause_what(p)
    end
  end
  local budget = { left = 100, swept = 0 }
  if late then
    return late
  elseif done then
    st.met = st.pause == 0 and st.waiting > 0 -- that run may have stopped at its bound
  else
    fatten(at, st, not st.form)
    touch(at, st) -- a full server must be able to grant, or to pause
    local was = st.pause
    pause_set(at, st, p, all, lasts > 0 and at.ms + lasts or 0, reason, notice)
    local change = revision_write(at, st, "pause", all and "all" or by, pause_text(p))
    expire(at, st, budget)
    if ended and st.pause == 0 then
      ended(at, st)
    end
    handoff(at, st, budget, true)
    save(at, st, nil, change)
    if st.pause < was then
      sooner(at, st)
    end
    publish(at)
  end
  local more = st.met or budget.left <= 0
  local word = st.pause > 0 and "paused" or "unpaused"
  return { word, math.max(st.pause - at.ms, 0), st.used, st.waiting, more and 2 or 0 }
end
