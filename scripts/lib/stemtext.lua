--- @include "lib/int"
-- stemtext writes a stem; the counterpart of stem.
local function stemtext(s, fence)
  local w = {
    int(fence), s.count, s.worked_at, s.extended, s.last, s.extended_at, s.more, int(s.own), int(s.deadline), s.call,
  }
  for _, e in ipairs(s.entries) do
    local n = #w
    w[n + 1], w[n + 2], w[n + 3], w[n + 4] = e.claim, e.kind, e.ext, e.at
    w[n + 5], w[n + 6], w[n + 7] = e.pending, e.call, e.fresh and 1 or 0
  end
  return table.concat(w, " ")
end
