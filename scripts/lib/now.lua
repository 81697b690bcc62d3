-- now returns the server's time: whole milliseconds, and microseconds.
local function now()
  local t = redis.call("TIME")
  local us = t[1] * 1000000 + t[2]
  return math.floor(us / 1000), us
end
