--- @include "line/remaining"
-- entry_remaining is how long an entry may believe in its hold (ms, -1 = no end): until its deadline,
-- but no later than the deadline would be if the outermost entry's own call came now. That call
-- starts the lease and the maximum holds.
local function entry_remaining(at, s, e)
  local outer, ends = s.entries[1], e.r.held
  if e ~= outer and outer.r.lease > 0 then
    ends = math.min(ends, at.ms + outer.r.lease + s.more)
  end
  if e ~= outer and e.r.max > 0 and e.r.limit == 0 then
    ends = math.min(ends, at.ms + e.r.max)
  end
  return remaining(at, ends)
end
