-- fetch reads what every step needs: the server's time, and the state of a name with,
-- where a claim is given, that claim's record and the fields named behind it (false
-- where there is none).
local function fetch(state, claim, ...)
  return redis.call("TIME"),
    redis.call("HMGET", state, "fmt", "counts", "ticket", "fence", "exp", "c:" .. (claim or ""), ...)
end
