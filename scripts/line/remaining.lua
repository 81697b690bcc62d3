--- @include "state/score"
-- remaining is how long it is until a deadline (ms), -1 for one that never comes.
local function remaining(at, deadline)
  return deadline >= score_forever and -1 or deadline - at.ms
end
