-- member reads the record of a node of a swarm: the number of its run, since when
-- it was dead if it is condemned (ms, 0 while it is not), its own zombie limit (ms),
-- and its label. The numbers stay text. It returns nil for no record.
local function member(text)
  local run, ends, limit, label = string.match(text or "", "^(%d+) (%d+) (%d+) (.*)$")
  return run and { run = run, ends = ends, limit = limit, label = label }
end
