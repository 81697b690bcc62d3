--- @include "state/record"
--- @include "state/fresh"
--- @include "state/least"
--- @include "state/save"
--- @include "line/first"
--- @include "line/leave"
--- @include "line/expire"
--- @include "line/handoff"
--- @include "line/tide"
--- @include "wake/tell"
-- release ends a node's own hold or wait, and hands on. stays is how long a tombstone
-- stays (ms, 0 = none): the claim's acquire may still be on its way, and what it meets must
-- say so. wish is what only the kind reads. The reply is
--   status, flags, fence, extra
-- flags 2: the run has stopped at its bound, sweep at once; the fence of the hold that it ended.
local function release(at, st, known, claim, node, stays, wish)
  if at.newer then
    return { "incompatible", at.newer }
  end
  local r = known and record_read(known)
  if not r then
    if not known and stays > 0 then
      redis.call("ZREM", at.line, "t:" .. claim) -- needs no memory: the rest works on a full server too
      fresh(at, st)
      if kind_fresh then
        kind_fresh(at, st)
      end
      bury(at, st, claim, stays)
      save(at, st, at.ms + stays, { "c:" .. claim, record_stone .. "gone" })
    end
    return { "not_held", string.match(known or "", record_word) or "" }
  elseif r.node ~= node then
    return { "taken" }
  end
  local deadline, budget = tonumber(redis.call("ZSCORE", at.line, "h:" .. claim)), { left = 100 }
  local parted = not deadline and first(at.line) == claim
  local extra, fields, sooner = leave(at, st, claim, r, deadline, stays > 0 and "gone" or nil, stays, wish)
  local stale = false
  if kind_part and deadline then
    r.held = deadline
    extra, fields, sooner, stale = kind_part(at, st, claim, r, wish)
  end
  if stale then
    local dead, ends = expire(at, st, budget)
    parted, sooner = parted or dead, least(sooner, ends)
  end
  handoff(at, st, budget, parted)
  save(at, st, stays > 0 and at.ms + stays or nil, fields)
  hasten(at, st, sooner)
  tell(at)
  local word = "released"
  if not deadline then
    word = "cancelled"
  elseif deadline <= at.ms then
    word = "expired"
  end
  return { word, (budget.left <= 0 or st.met) and 2 or 0, tonumber(r.fence), extra }
end
