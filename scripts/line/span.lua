--- @include "state/band"
-- span is how long it is until a deadline (ms), -1 for one that never comes.
local function span(at, deadline)
  return deadline >= band_forever and -1 or deadline - at.ms
end
