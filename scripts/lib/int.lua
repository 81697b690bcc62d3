-- int writes a whole number up to 2^53 in full; tostring would round it.
local function int(x)
  return string.format("%.0f", x)
end
