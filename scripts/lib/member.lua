-- member reads the record of a node of a swarm: the number of its run, when it
-- had probed last if it is condemned (ms, 0 while it is not), and its label. The
-- numbers stay text. It returns nil for no record.
local function member(text)
  local run, probed, label = string.match(text or "", "^(%d+) (%d+) (.*)$")
  return run and { run = run, probed = probed, label = label }
end
