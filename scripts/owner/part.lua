--- @include "state/band"
--- @include "line/moves"
--- @include "owner/group"
--- @include "owner/move"
-- part has the entries of a group go on without one that its node has ended. An entry that
-- extended the hold gives back what it has not used, but never what the outermost one's own
-- lease gives, and only where all entries that stay are of the node that calls and have
-- lowered their deadlines for it: none of another node, and none whose grant that node has
-- yet to hear of. It returns how many entries stay, and the moves, nil for none.
local function part(at, st, claim, r, lowered)
  local s = group(at, st, claim, r)
  local e, i = group_entry(s, claim)
  if not e then
    return s and #s.entries or 0, nil
  end
  table.remove(s.entries, i)
  if not s.entries[1] then
    return 0, nil
  end
  local m, unused = moves(), math.max(0, e.ext - (at.ms - e.at))
  for _, f in ipairs(s.entries) do
    if f.r.node ~= r.node or not lowered[f.claim] then
      unused = 0
    end
  end
  if s.deadline < band_forever then
    s.deadline = math.max(s.own, s.deadline - unused)
  end
  move(st, s, m)
  moves_write(at, st, m)
  return #s.entries, m
end
