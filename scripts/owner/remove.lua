--- @include "state/score"
--- @include "line/batch"
--- @include "owner/live"
--- @include "owner/deadline"
-- remove_entry has the entries of a group go on without one that its node has ended. An entry that
-- extended the hold gives back what it has not used, but never what the outermost entry's own lease
-- gives. It gives nothing back unless the node that calls has all entries that stay, knows of them,
-- and has lowered their local deadlines (lowered). It returns how many entries stay, and the batch
-- that it has written but for its fields, nil for none.
local function remove_entry(at, st, claim, r, lowered)
  local s = live_group(at, st, claim, r)
  local e, i = find_entry(s, claim)
  if not e then
    return s and #s.entries or 0, nil
  end
  table.remove(s.entries, i)
  if not s.entries[1] then
    return 0, nil
  end
  local m, unused = batch(), math.max(0, e.ext - (at.ms - e.at))
  for _, f in ipairs(s.entries) do
    if f.r.node ~= r.node or not lowered[f.claim] then
      unused = 0
    end
  end
  if s.deadline < score_forever then
    s.deadline = math.max(s.own, s.deadline - unused)
  end
  set_deadlines(st, s, m)
  batch_write(at, st, m)
  return #s.entries, m
end
