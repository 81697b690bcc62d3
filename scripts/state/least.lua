-- least is the smaller of two numbers, of which each may be nil.
local function least(a, b)
  return a and b and math.min(a, b) or a or b
end
