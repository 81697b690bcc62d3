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
  local of, count, worked_at, extended, last, extended_at, more, own, deadline, call, rest = string.match(text,
    "^(%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%S+)(.*)$")
  if of ~= int(fence) then
    return nil
  end
  local s = {
    count = count + 0, worked_at = worked_at + 0, extended = extended + 0, last = last + 0,
    extended_at = extended_at + 0, more = more + 0, own = own + 0, deadline = deadline + 0, call = call, entries = {},
  }
  for claim, kind, ext, came, pending, id, fresh in string.gmatch(rest, " (%S+) (%a) (%d+) (%d+) (%d+) (%S+) ([01])") do
    s.entries[#s.entries + 1] = group_entry(claim, kind, ext + 0, came + 0, pending + 0, id, fresh == "1")
  end
  return s
end

-- group_write is the counterpart of group_read.
local function group_write(s, fence)
  local parts = { string.format("%d %d %d %d %d %d %d %d %d ", fence, s.count, s.worked_at, s.extended, s.last,
    s.extended_at, s.more, s.own, s.deadline) .. s.call }
  for n, e in ipairs(s.entries) do
    parts[n + 1] = e.claim .. " " .. e.kind .. string.format(" %d %d %d ", e.ext, e.at, e.pending) .. e.call
      .. (e.fresh and " 1" or " 0")
  end
  return table.concat(parts, " ")
end
