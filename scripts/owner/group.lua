--- @include "state/int"
-- A group is what the entries of one owner have in common. Its text is the field stem of a lock's
-- state: words
--   fence        of the hold; where it is not the state's, the text is of an earlier hold
--   count        how many entries were made after the first
--   worked_at    when the last of them that extended nothing was granted (ms, 0 = never)
--   extended     by how much re-entries have extended the hold in all (ms)
--   last         lease of the last re-entry that extended (ms)
--   extended_at  when that one was granted (ms, 0 = never)
--   more         what all extensions have added, re-entries or not (ms)
--   own          deadline by the lease, its renewals and Extend alone (ms)
--   deadline     deadline with the extensions of entries too (ms)
--   call         ids of the last Extends by force, so that a replay adds nothing; - = none
-- Then for each entry, the outermost first:
--   claim        its claim
--   kind         o: outermost, w: worked through, e: extended
--   ext          what it has extended (ms)
--   came         when it came (ms)
--   pending      what it will extend with its own next call (ms)
--   call         the id of its last Extend, - = none
--   fresh        1 while it has no more than its wait lease, until its own next call, else 0

-- group_entry is an entry. These are all its fields; r is its record, with its deadline.
local function group_entry(claim, kind, ext, came, pending, call, fresh)
  return { claim = claim, kind = kind, ext = ext, at = came, pending = pending, call = call, fresh = fresh }
end

-- group_new is what a sole entry has; own and deadline are still to be set.
local function group_new(claim)
  return {
    count = 0, worked_at = 0, extended = 0, last = 0, extended_at = 0, more = 0, call = "-",
    entries = { group_entry(claim, "o", 0, 0, 0, "-", false) },
  }
end

-- group_read returns the group, or nil where the text is of an earlier hold: each has a
-- greater fence.
local function group_read(text, fence)
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
    s.entries[#s.entries + 1] = group_entry(
      w[i], w[i + 1], tonumber(w[i + 2]), tonumber(w[i + 3]), tonumber(w[i + 4]), w[i + 5], w[i + 6] == "1")
  end
  return s
end

-- group_write is the counterpart of group_read.
local function group_write(s, fence)
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
