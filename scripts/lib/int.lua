-- int writes a whole number up to 2^53 in full. Only text needs it: Redis takes
-- the numbers that a command or a reply is given in full, but .. and tostring
-- stop at 14 digits. Milliseconds have 13 until the year 2286.
local function int(x)
  return string.format("%.0f", x)
end
