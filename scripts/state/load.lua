--- @include "state/values"
--- @include "state/feature"
-- load makes a state of the values of a name. A name that was never used is all zero. It also
-- returns what makes the state one that the script must not write: its number, where these
-- scripts do not know it, or 0 for values that are not Berth's; nil for nothing. These are all
-- the fields:
--   fmt               the number of the name, 0 where it is not there yet
--   fence to rev      see state/values
--   was_used, was_cap, was_exp, was_rev, was_never  used, cap, exp and rev as they were read; and whether the
--                     keys had no expiry then
--   due               nil once holds have changed, so that it has to be read anew
--   form              fat; thin, see state/thin; nil where the name is not there yet
--   thin              of a thin name that is held: its hold, see state/thin
--   met               true once this run has found damage that the next sweep tells of
--   recounted         true once this run has made the counts anew
--   group_text        of a lock: the text of its owner's group, or false
--   group             of a lock: what owner/live has read
--   pool, counts      of a pool: its own counts, and their text as it was read
--   claim             of a pool: the claim of the call
--   extra             what the kind adds to the replies about that claim: of a pool the
--                     resource that it holds, or ""
local function load(text)
  local fmt, fence, exp, due, ticket, busy, used, waiting, cap, few = string.match(text or "", values_text)
  local capacity, until_then = cap and cap - values_base or 0, (exp or 0) + 0
  local st = {
    fmt = (fmt or 0) + 0, fence = (fence or 0) + 0, exp = until_then,
    due = due ~= values_none and (due or 0) + 0 or 0,
    ticket = (ticket or 0) + 0, busy = (busy or 0) + 0, cap = capacity, used = used and used - values_base or 0,
    waiting = waiting and waiting - values_line or 0,
    gone = 0, forever = 0, keep = 0, pause = 0, look = 0, rev = 0,
    was_used = used and used - values_base or 0, was_cap = capacity, was_exp = until_then, was_rev = 0,
    was_never = false, form = fmt and "fat",
  }
  if few and few ~= values_none_of_them then
    local keep, rev = string.match(few, values_quiet)
    if keep then
      st.keep, st.rev = keep + 0, rev + 0
    else
      local gone, forever, pause, look
      gone, forever, keep, pause, look, rev = string.match(few, values_few)
      st.gone, st.forever, st.keep = gone + 0, forever + 0, keep + 0
      st.pause, st.look, st.rev = pause + 0, look + 0, rev + 0
    end
    st.was_rev, st.was_never = st.rev, st.forever > 0 or st.keep > 0
  end
  if text and (st.fmt < feature_first or st.fmt > feature_newest) then
    local number = tonumber(string.match(text, values_number) or 0)
    return st, (number < feature_first or number > feature_newest) and number or 0
  end
  return st
end
