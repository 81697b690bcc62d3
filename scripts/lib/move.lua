--- @include "lib/bands"
--- @include "lib/pack"
--- @include "lib/stemtext"
-- move gives all entries of a group its deadline, each within its own limit. It
-- returns the scores to write (score, member, ...) and the fields to save (field,
-- value, ...), the furthest deadline (nil where none ends), and the earliest of
-- those that have come nearer (nil for none). It writes nothing.
local function move(st, s)
  local scores, fields, furthest, sooner = {}, {}, nil, nil
  local forever = bands().forever
  if s.deadline > forever then -- further off than there are deadlines
    s.own, s.deadline = math.min(s.own, forever - 1), forever - 1
  end
  for _, e in ipairs(s.entries) do
    local ends = e.r.limit > 0 and math.min(s.deadline, e.r.limit) or s.deadline
    if e.fresh then
      ends = math.min(ends, e.at + e.r.wait)
    end
    if ends < e.held then
      sooner = math.min(sooner or ends, ends)
    end
    if ends ~= e.held then
      scores[#scores + 1], scores[#scores + 2] = ends, "h:" .. e.claim
      e.held = ends
    end
    if ends < forever then
      furthest = math.max(furthest or 0, ends)
    end
    if e.changed then
      fields[#fields + 1], fields[#fields + 2] = "c:" .. e.claim, pack(e.r)
    end
  end
  if s.count > 0 or s.more > 0 then
    fields[#fields + 1], fields[#fields + 2] = "stem", stemtext(s, st.fence)
  end
  return scores, fields, furthest, sooner
end
