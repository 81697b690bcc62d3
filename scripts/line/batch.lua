--- @include "state/score"
--- @include "state/int"
--- @include "state/record"
-- batch gathers the deadlines that a step moves, to write them together. These are all
-- its fields:
--   scores    for the line: score, member, ...
--   fields    for the state: field, text, ...
--   furthest  the furthest deadline of those that the step has met, moved or not: the
--             linger may be another one (ms); nil for none with an end
--   sooner    the earliest of those that have come nearer (ms), nil for none
local function batch()
  return { scores = {}, fields = {} }
end

-- batch_hold has a hold end at a deadline (ms) from now on; r.held is the one that it had.
local function batch_hold(m, claim, r, ends)
  if ends < r.held then
    m.sooner = math.min(m.sooner or ends, ends)
  end
  if ends ~= r.held then
    m.scores[#m.scores + 1], m.scores[#m.scores + 2] = int(score_hold + ends), "h:" .. claim
    r.held = ends
  end
  if ends < score_forever then
    m.furthest = math.max(m.furthest or 0, ends)
  end
  if r.changed then
    r.text = record_write(r)
    m.fields[#m.fields + 1], m.fields[#m.fields + 2] = "c:" .. claim, r.text
  end
end

-- batch_write writes what belongs in the line; the fields are for save.
local function batch_write(at, st, m)
  if m.scores[1] then
    redis.call("ZADD", at.line, unpack(m.scores))
    st.due = nil
  end
end
