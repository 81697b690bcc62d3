--- @include "state/score"
--- @include "line/batch"
--- @include "owner/group"
-- set_deadlines gives all entries of a group its deadline, each within its own limit, as part of
-- the moves of a step. It writes nothing.
local function set_deadlines(st, s, m)
  if s.deadline > score_forever then -- further off than there are deadlines
    s.own, s.deadline = math.min(s.own, score_forever - 1), score_forever - 1
  end
  for _, e in ipairs(s.entries) do
    local ends = e.r.limit > 0 and math.min(s.deadline, e.r.limit) or s.deadline
    if e.fresh then
      ends = math.min(ends, e.at + e.r.wait)
    end
    batch_hold(m, e.claim, e.r, ends)
  end
  if s.count > 0 or s.more > 0 then
    m.fields[#m.fields + 1], m.fields[#m.fields + 2] = "stem", group_write(s, st.fence)
  end
end
