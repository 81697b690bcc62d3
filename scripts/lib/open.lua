--- @include "lib/now"
--- @include "lib/load"
-- open gathers what every step needs: the keys, the server's time, the linger
-- (ms), the channel prefix and the name for wake-ups; then it loads the state
-- and the record of a claim, if one is given. Where a newer release of Berth
-- has written the state, it returns that release's format as a fourth value,
-- and the script must not write. A field of the state that only some primitive
-- has is returned as a fifth.
local function open(state, line, linger, channel, name, claim, field)
  local ms, us = now()
  local at = { state = state, line = line, linger = tonumber(linger), channel = channel, name = name, ms = ms, us = us }
  local st, text, other = load(at, claim, field)
  return at, st, text, st.fmt > 1 and st.fmt or nil, other
end
