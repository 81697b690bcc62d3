--- @include "state/int"
--- @include "swarm/member"
-- condemn takes a node out of those that probe, for good. m is its record and
-- ends since when it is dead (ms). Its first write is a ZREM, so it works on a full
-- server; the caller moves the expiry. Scores are unique, so that a listing can
-- go on from one.
local function condemn(at, node, m, ends)
  local last = redis.call("ZREVRANGEBYSCORE", at.probes, at.left - 1, at.condemned, "WITHSCORES", "LIMIT", 0, 1)
  local score = math.max(at.condemned + at.ms, (tonumber(last[2]) or 0) + 1)
  redis.call("ZREM", at.probes, "p:" .. node)
  redis.call("ZADD", at.probes, score, "c:" .. node)
  m = m or { run = "0", limit = "0", label = "" }
  local text = member_write(m.run, int(ends), m.limit, m.label)
  redis.call("HSET", at.state, "fmt", 2, "n:" .. node, text)
end
