-- load makes a state of the fields that fetch has read. A name that was never used is
-- all zero. The counts, which every step changes, are one field:
--   cap used waiting gone forever keep
-- What save has to compare stays in at. It also returns the format of a state that a
-- newer release of Berth has written, and 0 for counts that are not Berth's: then the
-- script must not write.
local function load(at, v)
  local cap, used, waiting, gone, forever, keep
  if v[2] then
    cap, used, waiting, gone, forever, keep = string.match(v[2], "^(%d+) (%-?%d+) (%-?%d+) (%-?%d+) (%-?%d+) (%d+)$")
  end
  local st = {
    fmt = tonumber(v[1] or 0),
    cap = tonumber(cap or 0),
    used = tonumber(used or 0),
    waiting = tonumber(waiting or 0),
    gone = tonumber(gone or 0),
    forever = tonumber(forever or 0),
    keep = tonumber(keep or 0),
    ticket = tonumber(v[3] or 0),
    fence = tonumber(v[4] or 0),
    exp = tonumber(v[5] or 0),
  }
  at.cap, at.ticket = st.cap, st.ticket
  if st.fmt > 1 then
    return st, st.fmt
  end
  return st, (v[1] or v[2]) and not cap and 0 or nil
end
