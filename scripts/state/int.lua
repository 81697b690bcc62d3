-- int writes a whole number up to 2^53 in full: .. and tostring stop at 14 digits.
-- Redis takes the numbers that a command or a reply is given in full too, but a
-- command takes much longer to write one down than this.
local function int(x)
  return string.format("%d", x)
end
