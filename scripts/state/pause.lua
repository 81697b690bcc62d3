--- @include "state/int"
--- @include "state/revision"
-- A name may have two pauses, its own and that of all names: while one of them lasts nothing is granted. Of a name
-- that is paused, or was, the field pause has the last call that decided, see state/revision: by is all where that is
-- part of a pause of all names, and what has words
--   notice  the number of the last such pause that has paused the name, or from which it is excepted; 0 = none
--   own     when its own pause ends (ms), 0 = it has none
--   all     when that of all names ends (ms), 0 = it is not part of one
--   size    how many bytes the reason of the first one has
--   why     that reason, and behind it at once that of the second one: any bytes, up to the end
local function pause_text(p)
  return table.concat({ int(p.notice), int(p.own), int(p.all), #p.why, p.why .. p.why_all }, " ")
end

-- pause_read reads that: the words, why by itself and why_all, and since when that is so (ms, 0 = not known), and by.
local function pause_read(at, st)
  local p, what = { since = 0 }, nil
  if st.form == "fat" then
    p.since, p.by, what = revision_read(at, "pause")
  end
  local notice, own, all, size, why = string.match(what or "", "^(%d+) (%d+) (%d+) (%d+) (.*)$")
  size = (size or 0) + 0
  p.notice, p.own, p.all = (notice or 0) + 0, (own or 0) + 0, (all or 0) + 0
  p.why, p.why_all = string.sub(why or "", 1, size), string.sub(why or "", size + 1)
  return p
end

-- pause_what says in words what the last call has decided.
local function pause_what(p)
  local ends, why = p.own, p.why
  if p.by == "all" then
    ends, why = p.all, p.why_all
  end
  return (ends > 0 and "paused" or "unpaused") .. (why ~= "" and ": " .. why or "")
end
