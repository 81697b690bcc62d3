--- @include "lib/bands"
-- expiry returns the instant at which all keys of a name shall expire (ms): the
-- furthest deadline inside plus the linger, rounded up to a whole second so
-- that it seldom has to move; 0 = never, while a hold without end exists or the
-- capacity is to be kept. furthest is the furthest deadline that this run has
-- set, nil for none.
local function expiry(at, st, furthest)
  if st.forever > 0 or st.keep > 0 then
    return 0
  end
  local wanted = math.ceil(((furthest or at.ms) + at.linger) / 1000) * 1000
  -- A long lease that has ended must not keep the state.
  local idle = st.used <= 0 and st.waiting <= 0 and st.exp > at.ms + 2 * at.linger
  if st.exp == 0 or idle then
    -- New, or what kept the expiry away has gone: look at what is inside.
    local band = bands()
    for _, from in ipairs({ 0, band.alive, band.tomb }) do
      local last = st.fmt > 0 and redis.call("ZREVRANGEBYSCORE", at.line, from + band.width - 2, from,
        "WITHSCORES", "LIMIT", 0, 1)
      if last and last[2] then
        wanted = math.max(wanted, math.ceil((tonumber(last[2]) - from + at.linger) / 1000) * 1000)
      end
    end
    return wanted
  end
  return math.max(st.exp, wanted)
end
