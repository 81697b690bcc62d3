--- @include "lib/fetch"
--- @include "lib/assemble"
-- open reads a name, with the record of a claim, if one is given, and up to two
-- fields of the state that only some primitive has; see assemble.
local function open(state, line, linger, channel, name, claim, ...)
  local t, v = fetch(state, claim, ...)
  return assemble(t, v, state, line, linger, channel, name)
end
