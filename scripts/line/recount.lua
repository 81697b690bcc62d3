--- @include "state/score"
--- @include "state/int"
--- @include "state/record"
-- recount makes the counts of a name anew, once in a run, by what is in its line: that
-- was deleted by hand or by eviction, and the state still counts what was in it. Where
-- there are more than 100 holds by now, their sums stay as they are, too high, until
-- nothing is held.
local function recount(at, st)
  if st.recounted then
    return
  end
  st.recounted, st.due = true, nil
  st.waiting = redis.call("ZCOUNT", at.line, "0", int(score_hold - 1))
  if st.pool then
    st.pool.parked = redis.call("ZCOUNT", at.line, int(score_lanes), int(score_hold - 1))
  end
  st.gone = redis.call("ZCOUNT", at.line, int(score_tomb), int(score_tomb + score_width - 1))
  local holds = redis.call("ZRANGEBYSCORE", at.line, int(score_hold), int(score_hold + score_forever),
    "LIMIT", "0", "101")
  if #holds > 100 then
    return
  end
  st.used, st.forever = 0, 0
  local fields = { "c:" }
  for i, member in ipairs(holds) do
    fields[i] = "c:" .. string.sub(member, 3)
  end
  for _, text in ipairs(redis.call("HMGET", at.state, unpack(fields))) do
    local weight, forever = record_sums(text)
    st.used, st.forever = st.used + weight, st.forever + forever
  end
end
