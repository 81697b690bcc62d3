-- more is the field of a reply that has its caller sweep at once: 1 if this run has
-- stopped at its bound, or has met something damaged, which the sweep tells of.
local function more(at, stopped)
  return (stopped or at.met) and 1 or 0
end
