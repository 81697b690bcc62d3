--- @include "lib/int"
-- stemtext writes a stem; the counterpart of stem.
local function stemtext(s, fence)
  local w = {
    int(fence), s.count, s.worked_at, s.extended, s.last, s.extended_at, s.more, int(s.own), int(s.deadline), s.call,
  }
  for _, e in ipairs(s.entries) do
    w[#w + 1], w[#w + 2], w[#w + 3], w[#w + 4], w[#w + 5] = e.claim, e.kind, e.ext, e.at, e.pending
  end
  return table.concat(w, " ")
end
