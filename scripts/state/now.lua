-- now returns the server's time, as TIME tells it: whole milliseconds, and microseconds.
local function now(t)
  local seconds, micros = t[1] + 0, t[2] + 0
  return seconds * 1000 + (micros - micros % 1000) / 1000, seconds * 1000000 + micros
end
