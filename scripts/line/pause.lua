--- @include "state/fatten"
--- @include "state/touch"
--- @include "state/save"
--- @include "state/revision"
--- @include "state/pause"
--- @include "line/expire"
--- @include "line/handoff"
--- @include "wake/publish"
-- pause_apart answers a call that is part of a pause of all names, or of the end of one, where that leaves the
-- name alone: somebody has decided who knew of this notice, or of a later one; the name is paused for longer,
-- or by an operator; or a walk finds it idle. It writes nothing.
local function pause_apart(at, st, lasts, by, notice)
  local _, _, last, known = pause_read(at, st)
  local left = math.max(st.pause - at.ms, 0)
  if known >= notice or lasts > 0 and left >= lasts or lasts == 0 and (left == 0 or last ~= "all") then
    return { "kept", left, st.used, st.waiting, 0 }
  elseif by == "walk" and st.used <= 0 and st.waiting <= 0 then
    return { "idle" }
  end
end

-- pause has nothing granted of a name for so long (ms), or ends its pause (0), and hands on then. stamp is the
-- revision that the caller has seen, and by the id of the call; or by is walk or first, of a call that is part
-- of a pause of all names, and notice the number of that one's notice. The reply is
--   status, left_ms, held, waiting, flags
--   paused, unpaused  what the name is now
--   kept              it was left as it is
-- or idle. flags are as in line/reply. ended, nil for none, is what the kind does where a pause has ended.
local function pause(at, st, lasts, reason, stamp, by, notice, ended)
  if at.newer then
    return { "incompatible", at.newer }
  end
  local all, late, done = by == "walk" or by == "first"
  if all then
    late = pause_apart(at, st, lasts, by, notice)
  else
    late, done = revision_stale(at, st, "pause", stamp, by)
  end
  local budget = { left = 100, swept = 0 }
  if late then
    return late
  elseif done then
    st.met = st.pause == 0 and st.waiting > 0 -- that run may have stopped at its bound
  else
    fatten(at, st, not st.form)
    touch(at, st) -- a full server must be able to grant, or to pause
    st.pause = lasts > 0 and at.ms + lasts or 0
    revision_write(at, st, "pause", all and "all" or by, pause_what(notice, lasts, reason))
    expire(at, st, budget)
    if ended and st.pause == 0 then
      ended(at, st)
    end
    handoff(at, st, budget, true)
    save(at, st)
    publish(at)
  end
  local more = st.met or budget.left <= 0
  local word = st.pause > 0 and "paused" or "unpaused"
  return { word, math.max(st.pause - at.ms, 0), st.used, st.waiting, more and 2 or 0 }
end
