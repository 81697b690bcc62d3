--- @include "state/int"
--- @include "state/values"
-- slim gives a name its thin form back, once it is idle and has been calm for ten seconds, and no
-- operator has changed it for 60. Only the fence stays. The last ticket and the revision are forgotten,
-- so they must lie in the past, as the fence must. It returns whether the name is thin now.
local function slim(at, st)
  local calm = at.ms - 10000 -- a moment in the future is from before the clock went back
  if st.used > 0 or st.waiting > 0 or st.gone > 0 or st.keep > 0 or st.pause > 0 or st.cap ~= 1 or st.group_text
    or st.busy > calm and st.busy <= at.ms or st.ticket > calm or st.rev > at.ms - values_recent or st.fence >= at.us then
    return false
  end
  redis.call("UNLINK", at.line)
  redis.call("SET", at.state, string.format(values_fence, st.fence), "PX", int(at.linger))
  return true
end
