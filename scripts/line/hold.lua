--- @include "state/score"
-- hold_ends is the deadline of a claim's hold (ms), nil where the line has none.
local function hold_ends(at, st, claim)
  if st and st.form == "thin" then
    return st.thin and st.thin.claim == claim and st.thin.held or nil
  end
  local score = tonumber(redis.call("ZSCORE", at.line, "h:" .. claim))
  return score and score - score_hold
end
