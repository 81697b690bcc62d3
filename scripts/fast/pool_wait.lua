--- @include "state/score"
--- @include "state/values"
-- fast_pool_wait is what fast_wait goes on with (p) for a claim on a pool in which nothing is free, nil where
-- something may have to be done first: bindings have moments, none of which has passed, and nothing else has one.
local function fast_pool_wait(text, line, now, p)
  if string.sub(text, values_cap, values_calm_end) ~= values_pool then
    return nil
  end
  local first = redis.call("ZRANGEBYSCORE", line, score_first_op, "+inf", "WITHSCORES", "LIMIT", "0", "1")
  if first[1] ~= "-" and (string.sub(first[1] or "", 1, 2) ~= "u:" or first[2] <= score_before_bind .. now) then
    return nil
  end
  p.text, p.now = text, now
  return p
end
