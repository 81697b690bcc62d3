--- @include "state/int"
--- @include "state/revision"
-- Of a name that is paused, or was, the field pause has the last call that decided, see state/revision: by is all where
-- that is part of a pause of all names, and what has words
--   notice  the number of the last such pause that the caller knew of, 0 = none
--   word    paused or unpaused; and, behind a colon, why: any bytes, up to the end
local function pause_what(notice, lasts, reason)
  return int(notice) .. (lasts > 0 and " paused" or " unpaused") .. (reason ~= "" and ": " .. reason or "")
end

-- pause_read returns since when that is so (ms, 0 = not known), why, by and notice.
local function pause_read(at, st)
  local since, by, what = 0, nil, nil
  if st.form == "fat" then
    since, by, what = revision_read(at, "pause")
  end
  local notice, reason = string.match(what or "", "^(%d+) %a+:? ?(.*)$")
  return since, reason or "", by, (notice or 0) + 0
end
