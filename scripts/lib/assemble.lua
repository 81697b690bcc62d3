--- @include "lib/now"
--- @include "lib/load"
-- assemble makes of what was fetched what the steps work with: at has the keys, the
-- server's time, the linger (ms), the channel prefix and the name for wake-ups; st is
-- the state. It also returns the claim's record, and as a fourth value what load returns
-- of a state that the script must not write. A fifth and a sixth are fields that were named to fetch.
local function assemble(t, v, state, line, linger, channel, name)
  local ms, us = now(t)
  local at = { state = state, line = line, linger = tonumber(linger), channel = channel, name = name, ms = ms, us = us }
  local st, newer = load(at, v)
  return at, st, v[6], newer, v[7], v[8]
end
