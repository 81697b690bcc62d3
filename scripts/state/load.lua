--- @include "state/counts"
--- @include "state/feature"
-- load makes a state of the fields that fetch has read. A name that was never used is all
-- zero. It also returns what makes the state one that the script must not write: its
-- number, where it uses a feature that these scripts do not know, or 0 for counts that
-- are not Berth's; nil for nothing. These are all the fields:
--   fmt               the number of the name, 0 where it is not there yet
--   cap to keep       the counts, see state/counts
--   ticket, fence     the last ones
--   exp               when the Redis keys of the name expire (ms), 0 = never
--   was_cap, was_ticket  cap and ticket as they were read
--   low               the earliest deadline among the holds as this run has read it (ms),
--                     false for none with an end; nil where it was not read, or holds
--                     have changed since
--   met               true once this run has found damage that the next sweep tells of
--   recounted         true once this run has made the counts anew
--   stem              of a lock: the text of its stem, or false
--   group             of a lock: what owner/group has read
--   pool              of a pool: its own counts
--   claim             of a pool: the claim of the call
--   extra             what the kind adds to the replies about that claim: of a pool the
--                     resource that it holds, or ""
local function load(v)
  local cap, used, waiting, gone, forever, keep = string.match(v[2] or counts_none, counts_text)
  local fmt, capacity, ticket = tonumber(v[1] or 0), tonumber(cap or 0), tonumber(v[3] or 0)
  local st = {
    fmt = fmt, cap = capacity, was_cap = capacity, ticket = ticket, was_ticket = ticket,
    used = math.max(tonumber(used or 0), 0), waiting = tonumber(waiting or 0), gone = tonumber(gone or 0),
    forever = tonumber(forever or 0), keep = tonumber(keep or 0),
    fence = tonumber(v[4] or 0), exp = tonumber(v[5] or 0),
  }
  if fmt > feature_newest then
    return st, fmt
  end
  return st, (not cap or v[1] and not v[2]) and 0 or nil
end
