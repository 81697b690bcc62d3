--- @include "state/score"
--- @include "state/int"
-- earliest is the earliest deadline of a hold (ms), 0 where none has an end. A run that has
-- changed holds leaves it to be read anew.
local function earliest(at, st)
  if not st.due then
    local hold = st.used > 0 and redis.call("ZRANGEBYSCORE", at.line, int(score_hold), int(score_hold + score_forever - 1),
      "WITHSCORES", "LIMIT", "0", "1")[2]
    st.due = hold and tonumber(hold) - score_hold or 0
  end
  return st.due
end
