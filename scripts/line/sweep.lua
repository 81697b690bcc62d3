--- @include "state/save"
--- @include "line/earliest"
--- @include "line/expire"
--- @include "line/patrol"
--- @include "line/handoff"
--- @include "line/deadline"
--- @include "line/reply"
--- @include "wake/publish"
-- sweep drops what has expired, and hands on. The reply is
--   status, next_ms, flags, setting, dropped
-- and then what only the kind tells; see line/reply. Of the line it looks at a part, see
-- patrol, or, called again for as long as it says that more is left, at all of it.
local function sweep(at, st, node, whole)
  local reply = { "swept", -1, 0, 0, 0 }
  if at.newer then
    return { "incompatible", at.newer }
  elseif st.form ~= "fat" then
    reply[4] = st.cap
    return reply
  end
  if st.waiting <= 0 and st.gone <= 0 and st.look <= 0 and (st.used <= 0 or earliest(at, st) > at.ms)
    and not (kind_pending and kind_pending(at)) then
    return { "swept", -1, 0, kind_setting and kind_setting(st) or st.cap, 0 } -- the rest is not even made
  end
  local budget, used, look = { left = 100, swept = 0 }, st.used, st.look
  local sooner = expire(at, st, budget)
  local head_left, found
  if whole == "1" then
    st.look = 0
  end
  if st.waiting > 0 then
    head_left, found = patrol(at, st, budget, 100)
  end
  handoff(at, st, budget, head_left)
  reply[5] = budget.swept
  local news = kind_tell and kind_tell(at, st, reply)
  st.met = st.met or found or whole ~= "0" and st.look > 0
  if budget.left < 100 or news or st.recounted or st.used ~= used or st.look ~= look then
    save(at, st)
    notify(at, st, sooner)
  end
  reply_next(at, st, node, budget, reply)
  publish(at)
  return reply
end
