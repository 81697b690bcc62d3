-- The record of a node of a swarm is the field n:<node> of its state: words
--   run    the number of the node's run
--   ends   since when it was dead, if it is condemned (ms), else 0
--   limit  its own zombie limit (ms)
--   label  any bytes, up to the end

-- member_read returns it, or nil for no record. The numbers stay text.
local function member_read(text)
  local run, ends, limit, label = string.match(text or "", "^(%d+) (%d+) (%d+) (.*)$")
  return run and { run = run, ends = ends, limit = limit, label = label }
end

-- member_write is the counterpart of member_read.
local function member_write(run, ends, limit, label)
  return run .. " " .. ends .. " " .. limit .. " " .. label
end
