--- @include "owner/live"
-- targets are the entries of the hold that has a fence ("0" = any), all of which a force
-- call ends, or nil and the reply. The caller reads the fence first and names it, so that a
-- repeated call does not end the hold of the next in line.
local function targets(at, st, fence)
  local s = st.used > 0 and live_group(at, st)
  if not s then
    return nil, { "not_held", "" }
  elseif fence ~= "0" and fence - s.entries[1].r.fence ~= 0 then
    return nil, { "other", tonumber(s.entries[1].r.fence) }
  end
  return s.entries
end
