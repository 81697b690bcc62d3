--- @include "lib/bands"
-- span is how long it is until a deadline (ms), -1 for one that never comes.
local function span(at, deadline)
  return deadline >= bands().forever and -1 or deadline - at.ms
end
