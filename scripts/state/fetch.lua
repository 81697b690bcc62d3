-- fetch reads what every step needs: the server's time, and of a state the fields that
-- load takes, a claim's record, and the fields named behind it (false where there is
-- none).
local function fetch(state, claim, ...)
  return redis.call("TIME"),
    redis.call("HMGET", state, "fmt", "counts", "ticket", "fence", "exp", "c:" .. (claim or ""), ...)
end
