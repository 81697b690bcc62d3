--- @include "lib/int"
-- stem reads what the entries of one owner on a lock have in common, nil where
-- the text is of an earlier hold: each has a greater fence. The text is words:
--   fence        of the hold
--   count        how many entries were made after the first
--   worked_at    when the last of them that extended nothing was granted (ms, 0 = never)
--   extended     by how much re-entries have extended the hold in all (ms)
--   last         lease of the last re-entry that extended (ms), and
--   extended_at  when it was granted (ms, 0 = never)
--   more         what all extensions have added, re-entries or not (ms)
--   own          deadline by the lease, its renewals and Extend alone (ms)
--   deadline     deadline with the extensions of entries too (ms)
--   call         ids of the last Extends by force, so that a replay adds nothing; - = none
-- and for each entry, the outermost first: its claim; o: outermost, w: worked
-- through, e: extended; what it has extended (ms); when it came (ms); what it will
-- extend with its own next call (ms); the id of its last Extend; and 1 while it
-- has no more than its wait lease, until its own next call.
local function stem(text, fence)
  local w = {}
  for word in string.gmatch(text, "%S+") do
    w[#w + 1] = word
  end
  if w[1] ~= int(fence) then
    return nil
  end
  local s = {
    count = tonumber(w[2]), worked_at = tonumber(w[3]), extended = tonumber(w[4]), last = tonumber(w[5]),
    extended_at = tonumber(w[6]), more = tonumber(w[7]), own = tonumber(w[8]), deadline = tonumber(w[9]),
    call = w[10], entries = {},
  }
  for i = 11, #w, 7 do
    s.entries[#s.entries + 1] = {
      claim = w[i], kind = w[i + 1], ext = tonumber(w[i + 2]), at = tonumber(w[i + 3]), pending = tonumber(w[i + 4]),
      call = w[i + 5], fresh = w[i + 6] == "1",
    }
  end
  return s
end
