--[[
claim_revision: how far the changes by operators are, before a call that is one.
KEYS[1] state (HASH v -> values, c:claim -> record; STRING see state/thin)
KEYS[2] line (ZSET place-claim, h:, t:claim, - -> score, see state/score)
RETURNS {"revision", revision} | {"incompatible", format}
REPLAY reads only    COST O(1)
]]
-- 0 of a name that is thin or not there. The call that follows says what it was told here, and is refused
-- where another one was faster; see state/revision.
--- @include "state/fetch"
--- @include "state/open"
local time, kept, top = fetch(KEYS)
local at, st = open(KEYS, "0", "", "", nil, time, kept, top)
if at.newer then
  return { "incompatible", at.newer }
end
return { "revision", st.rev }
