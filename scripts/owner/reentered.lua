--- @include "line/remaining"
--- @include "owner/remaining"
-- reentered is the reply of acquire for an entry that is not the outermost one. Beyond a
-- grant it has the terms of the hold, as words: lease_ms, kind, limit_ms, extended_ms, group_ms.
-- group_ms is how far off the common deadline is, -1 where that has no end, or the outermost entry
-- has yet to make its first call, which may bring it nearer.
local function reentered(at, s, e, more)
  local r, settled = e.r, s.entries[1].r.phase ~= "g"
  local flags = (e.pending == 0 and not e.fresh and 1 or 0) + (more and 2 or 0)
  return { "reentered", tonumber(r.ticket), tonumber(r.fence), entry_remaining(at, s, e), flags, 0,
    string.format("%d %s %d %d %d", r.lease, r.kind, r.limit > 0 and r.limit - at.ms or -1, e.ext + e.pending,
      settled and remaining(at, s.deadline) or -1) }
end
