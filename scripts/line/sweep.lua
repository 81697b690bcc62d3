--- @include "state/save"
--- @include "line/expire"
--- @include "line/handoff"
--- @include "line/tide"
--- @include "line/reply"
--- @include "wake/tell"
-- sweep drops what has expired, and hands on. The reply is
--   status, next_ms, flags, setting, dropped
-- and then what only the kind tells; see line/reply.
local function sweep(at, st, node)
  local reply = { "swept", -1, 0, 0, 0 }
  if at.newer then
    return { "incompatible", at.newer }
  elseif st.fmt == 0 then
    return reply
  end
  local budget, used = { left = 100 }, st.used
  local dead, sooner = expire(at, st, budget)
  reply[5] = 100 - budget.left
  handoff(at, st, budget, dead)
  local news = kind_tell and kind_tell(at, st, reply)
  if budget.left < 100 or news or st.used ~= used then
    save(at, st)
    hasten(at, st, sooner)
  end
  reply_tide(at, st, node, budget, reply)
  tell(at)
  return reply
end
