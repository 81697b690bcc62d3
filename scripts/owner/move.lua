--- @include "state/band"
--- @include "line/moves"
--- @include "owner/stem"
-- move gives all entries of a group its deadline, each within its own limit, as part of
-- the moves of a step. It writes nothing.
local function move(st, s, m)
  if s.deadline > band_forever then -- further off than there are deadlines
    s.own, s.deadline = math.min(s.own, band_forever - 1), band_forever - 1
  end
  for _, e in ipairs(s.entries) do
    local ends = e.r.limit > 0 and math.min(s.deadline, e.r.limit) or s.deadline
    if e.fresh then
      ends = math.min(ends, e.at + e.r.wait)
    end
    moves_hold(m, e.claim, e.r, ends)
  end
  if s.count > 0 or s.more > 0 then
    m.fields[#m.fields + 1], m.fields[#m.fields + 2] = "stem", stem_write(s, st.fence)
  end
end
