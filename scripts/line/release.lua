--- @include "state/record"
--- @include "state/fatten"
--- @include "line/thin"
--- @include "line/hold"
--- @include "state/least"
--- @include "state/save"
--- @include "line/place"
--- @include "line/leave"
--- @include "line/expire"
--- @include "line/handoff"
--- @include "line/deadline"
--- @include "wake/publish"
-- release ends a node's own hold or wait, and hands on. stays is how long a tombstone stays (ms,
-- 0 = none): the claim's acquire may still be on its way, and must not queue or grant when it
-- arrives. wish is what only the kind reads. The reply is
--   status, flags, fence, extra
-- flags 2: the run has stopped at its bound, sweep at once; the fence of the hold that it ended.
local function release(at, st, known, claim, node, stays, wish)
  if at.newer then
    return { "incompatible", at.newer }
  end
  local reply = st.form == "thin" and release_thin(at, st, claim, node, stays)
  if reply then
    return reply
  end
  local r = known and record_read(known)
  if not r then
    if not known and stays > 0 then
      redis.call("ZREM", at.line, "t:" .. claim) -- needs no memory: the rest works on a full server too
      fatten(at, st, false)
      add_tombstone(at, st, claim, stays)
      save(at, st, at.ms + stays, { "c:" .. claim, record_stone .. "gone" })
    end
    return { "not_held", string.match(known or "", record_word) or "" }
  elseif r.node ~= node then
    return { "taken" }
  end
  fatten(at, st, false, claim)
  local deadline, budget = hold_ends(at, st, claim), { left = 100, swept = 0 }
  local head_left = not deadline and at.head == r.place .. place_mark .. claim
  local extra, fields, sooner = leave(at, st, claim, r, deadline, stays > 0 and "gone" or nil, stays, wish)
  local stale = false
  if kind_remove and deadline then
    r.held = deadline
    extra, fields, sooner, stale = kind_remove(at, st, claim, r, wish)
  end
  if stale or st.gone > 0 then
    sooner = least(sooner, expire(at, st, budget))
  end
  handoff(at, st, budget, head_left)
  save(at, st, stays > 0 and at.ms + stays or nil, fields)
  notify(at, st, sooner)
  publish(at)
  local word = "released"
  if not deadline then
    word = "cancelled"
  elseif deadline <= at.ms then
    word = "expired"
  end
  return { word, (budget.left <= 0 or st.met) and 2 or 0, tonumber(r.fence), extra }
end
