--- @include "lib/int"
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
  local function after(deadline)
    return math.ceil((deadline + at.linger) / 1000) * 1000
  end
  local wanted = after(furthest or at.ms)
  if st.exp == 0 and st.fmt > 0 then
    -- New, or the last hold without end has gone: look at what is inside.
    local band = bands()
    for _, from in ipairs({ 0, band.alive, band.tomb }) do
      local last = redis.call("ZREVRANGEBYSCORE", at.line, int(from + band.width - 2), int(from),
        "WITHSCORES", "LIMIT", 0, 1)
      if last[2] then
        wanted = math.max(wanted, after(tonumber(last[2]) - from))
      end
    end
    return wanted
  end
  local empty = st.used <= 0 and st.waiting <= 0 and st.gone <= 0
  if empty and st.exp > at.ms + 2 * at.linger then
    return wanted -- a long lease that has ended must not keep the state
  end
  return math.max(st.exp, wanted)
end
