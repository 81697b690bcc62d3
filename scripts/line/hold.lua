--- @include "state/score"
--- @include "state/least"
-- hold_ends is the deadline of a claim's hold (ms), nil where the line has none.
local function hold_ends(at, st, claim)
  if st and st.form == "thin" then
    return st.thin and st.thin.claim == claim and st.thin.held or nil
  end
  local score = tonumber(redis.call("ZSCORE", at.line, "h:" .. claim))
  return score and score - score_hold
end

-- hold_first is the first end of the holds of some claims (ms), nil for none.
local function hold_first(at, claims)
  local members, ends = {}, nil
  for n, claim in ipairs(claims) do
    members[n] = "h:" .. claim
  end
  for _, score in ipairs(members[1] and redis.call("ZMSCORE", at.line, unpack(members)) or {}) do
    ends = least(ends, score and score - score_hold or nil)
  end
  return ends
end
