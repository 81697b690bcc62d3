--- @include "state/score"
--- @include "state/values"
--- @include "state/record"
--- @include "line/earliest"
-- fast_release takes a hold back in the plain case: the name is fat, the claim is the node's own
-- and not detached, and it leaves no tombstone. Where nobody waits, that is all. Where the first
-- in line lives and fills the name, it is granted to that one, see fast_handoff. That is what the
-- general way does, in the fewest steps; see fast/acquire. It returns the reply, or nil, and has
-- written nothing, in every other case; and what fast_handoff goes on with.
local function fast_release(t, v, top, keys, linger, node, claim, stays)
  if stays ~= "0" or v[3] then
    return nil
  end
  local text = v[1] or ""
  local cap, used, waiting, kept, rest = string.match(text, values_behind, values_words)
  local own, fence, weight = string.match(v[2] or "", record_own)
  if not top or own ~= node or kept ~= values_calm or string.sub(text, 1, 2) ~= values_known then
    return nil
  end
  local us, left = values_us(t), used - weight
  local now, due = string.sub(us, 1, values_millis), string.sub(text, values_due, values_due + 12)
  local exp = string.sub(text, values_exp, values_exp + 12)
  local ends = due
  if left ~= 0 then
    ends = redis.call("ZSCORE", keys[2], "h:" .. claim)
    ends = ends and ends - score_hold
  end
  if left < 0 or not ends or now + linger - exp > 0 then
    return nil
  end
  local reply = { ends - now > 0 and "released" or "expired", 0, fence }
  if waiting ~= "0" then
    return nil, { us = us, now = now, left = left, ends = ends, due = due, cap = cap, waiting = waiting, kept = kept,
      rest = rest, reply = reply }
  end
  -- What has been calm becomes thin, and what would stay too long is the general way's.
  local busy = string.sub(text, values_busy, values_busy + 12)
  local ticket = string.sub(text, values_ticket, values_ticket + 12)
  if left == 0 and (exp - now > 2 * linger or now - busy >= 10000 and now - ticket >= 10000) then
    return nil
  end
  redis.call("ZREM", keys[2], "h:" .. claim)
  redis.call("HDEL", keys[1], "c:" .. claim)
  if left == 0 then
    due = values_none
  elseif ends - due == 0 then
    due = string.format(values_ms, earliest({ line = keys[2] }, { used = left }))
  end
  redis.call("HSET", keys[1], "v", string.sub(text, 1, values_due - 1) .. due
    .. string.sub(text, values_ticket - 1, values_busy - 1) .. (left > 1 and now or busy) .. values_gap .. cap
    .. values_gap .. string.format("%d", left) .. values_gap .. waiting .. values_gap .. kept .. rest)
  return reply
end
