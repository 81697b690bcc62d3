--- @include "state/fatten"
--- @include "state/touch"
--- @include "state/save"
--- @include "state/revision"
--- @include "state/pause"
--- @include "line/expire"
--- @include "line/handoff"
--- @include "line/deadline"
--- @include "line/place"
--- @include "state/score"
--- @include "state/int"
--- @include "state/record"
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

-- pause_sooner tells those who wait behind the first one, once a pause ends sooner than they know: the first
-- one, whose part it is else, may be dead. These are 50; others hear it by their heartbeats.
local function pause_sooner(at, st)
  local next_at, head, first_r = soonest(at, st), first_waiter(at)
  if first_r and st.pause == 0 then
    next_at = math.min(next_at or math.huge, record_alive(first_r))
  end
  local last = st.pause > 0 and score_hold - 1 or score_last_lane -- see pause about those behind that
  local members = next_at and redis.call("ZRANGEBYSCORE", at.line, "0", int(last), "LIMIT", "0", "50") or {}
  local told = {}
  for _, member in ipairs(members) do
    local claim = select(2, string.match(member, place_member))
    local text = claim and claim ~= head and redis.call("HGET", at.state, "c:" .. claim)
    local r = text and record_read(text)
    if r and not told[r.node] then
      told[r.node] = notify_node(at, r, next_at)
    end
  end
end

-- pause has nothing granted of a name for so long (ms), or ends its pause (0), and hands on then. stamp is the
-- revision that the caller has seen, and by the id of the call; or by is walk or first, of a call that is part
-- of a pause of all names, and notice the number of that one's notice. The reply is
--   status, left_ms, held, waiting, flags
--   paused, unpaused  what the name is now
--   kept              it was left as it is
-- or idle. flags are as in line/reply. ended, nil for none, is what the kind does where a pause has ended:
-- of a pool, for those who wait for one resource.
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
    local was = st.pause
    st.pause = lasts > 0 and at.ms + lasts or 0
    revision_write(at, st, "pause", all and "all" or by, pause_what(notice, lasts, reason))
    expire(at, st, budget)
    if ended and st.pause == 0 then
      ended(at, st)
    end
    handoff(at, st, budget, true)
    save(at, st)
    if st.pause < was then
      pause_sooner(at, st)
    end
    publish(at)
  end
  local more = st.met or budget.left <= 0
  local word = st.pause > 0 and "paused" or "unpaused"
  return { word, math.max(st.pause - at.ms, 0), st.used, st.waiting, more and 2 or 0 }
end
