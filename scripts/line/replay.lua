--- @include "state/record"
--- @include "line/hold"
--- @include "line/place"
--- @include "line/reply"
-- replay answers a claim that has asked before: the same answer, unless its hold or wait has ended
-- since. Then it returns nil, the claim's record, and the deadline of the hold, nil for a claim that
-- waited.
local function replay(at, st, known, ask)
  local was = record_read(known)
  if not was then
    return { "gone" }
  elseif was.node ~= ask.r.node then
    return { "foreign" }
  end
  local held = hold_ends(at, st, ask.claim)
  if held and held > at.ms then
    return ask.owner and kind_enter and kind_enter(at, st, ask, true)
      or reply_granted(at, st, was, tonumber(was.fence), held, false, st.extra)
  end
  local lane = was.phase == "w" and was.alive > at.ms
    and tonumber(redis.call("ZSCORE", at.line, was.place .. place_mark .. ask.claim))
  if lane then
    return reply_queued(at, st, ask.claim, was, lane)
  elseif st.form == "thin" then
    return nil -- its hold has ended, and nothing is left of it
  end
  return nil, was, held
end
