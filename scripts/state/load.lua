--- @include "state/values"
--- @include "state/feature"
-- load makes a state of the values of a name. A name that was never used is all zero. It also
-- returns what makes the state one that the script must not write: its number, where these
-- scripts do not know it, or 0 for values that are not Berth's; nil for nothing. These are all
-- the fields:
--   fmt               the number of the name, 0 where it is not there yet
--   fence to news     see state/values
--   was_cap, was_exp, was_never  cap and exp as they were read; and whether the keys had no
--                     expiry then
--   form              fat; thin, see state/thin; nil where the name is not there yet
--   thin              of a thin name that is held: its hold, see state/thin
--   due_known         false once holds have changed, so that due has to be read anew
--   met               true once this run has found damage that the next sweep tells of
--   recounted         true once this run has made the counts anew
--   stem              of a lock: the text of its stem, or false
--   group             of a lock: what owner/group has read
--   pool              of a pool: its own counts
--   claim             of a pool: the claim of the call
--   extra             what the kind adds to the replies about that claim: of a pool the
--                     resource that it holds, or ""
local function load(text)
  local fmt, fence, exp, due, ticket, busy, cap, used, waiting, gone, forever, keep, look, rev, news =
    string.match(text or "", values_text)
  local capacity, until_then, endless, kept = tonumber(cap or 0), tonumber(exp or 0), tonumber(forever or 0),
    tonumber(keep or 0)
  local st = {
    fmt = tonumber(fmt or 0), fence = tonumber(fence or 0), exp = until_then, due = tonumber(due or 0),
    ticket = tonumber(ticket or 0), busy = tonumber(busy or 0), cap = capacity, used = math.max(tonumber(used or 0), 0),
    waiting = tonumber(waiting or 0), gone = tonumber(gone or 0), forever = endless, keep = kept,
    look = tonumber(look or 0), rev = tonumber(rev or 0), news = tonumber(news or 0),
    was_cap = capacity, was_exp = until_then, was_never = endless > 0 or kept > 0, due_known = true,
    form = fmt and "fat" or nil,
  }
  local number = text and tonumber(string.match(text, values_number) or 0)
  if number and (not fmt or number < feature_first or number > feature_newest) then
    return st, (number < feature_first or number > feature_newest) and number or 0
  end
  return st
end
