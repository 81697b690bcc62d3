--- @include "fast/beats"
-- fast_renew takes the heartbeat of one claim in the plain case: the name is fat, the claim
-- holds, by a lease that renews and has been confirmed, nobody waits, and no hold has expired.
-- That is what the general way does, in the fewest steps; see fast/acquire. It returns the lease and the fence.
-- In every other case it returns nil, and has written nothing, but that the line lacks the hold: then the general
-- way sets the line's expiry anew.
local function fast_renew(beats, v, state, line, claim)
  local text, record = v[1], v[2]
  local call = redis.call
  local behind = not v[3] and text and fast_behind(beats, text)
  if not behind or not fast_beating(beats, record) then
    return nil
  end
  local exp, hold = string.sub(text, values_exp, values_due - 2), "h:" .. claim
  if beats.reach > exp then
    exp = beats.exp
  end
  if call("PEXPIREAT", line, exp) ~= 1 then -- first what needs no memory
    return nil
  elseif call("ZADD", line, "XX", "CH", score_held .. beats.ends, hold) == 0 and not call("ZSCORE", line, hold) then
    return nil
  end
  fast_write(beats, text, behind, state, line, exp)
  return beats.lease, string.sub(record, record_fence, record_fence_end)
end
