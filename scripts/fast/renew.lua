--- @include "state/score"
--- @include "state/values"
--- @include "state/record"
--- @include "line/earliest"
-- fast_renew takes the heartbeat of one claim in the plain case: the name is fat, the claim
-- holds, by a lease that renews and has been confirmed, nobody waits, and no hold has expired.
-- That is what the general way does, in the fewest steps; see fast/acquire. It returns the reply,
-- or nil, and has written nothing, in every other case. mode is nil where there is more than one
-- claim.
local function fast_renew(t, v, top, keys, linger, node, claim, mode)
  if mode ~= "beat" or v[3] then
    return nil
  end
  local text = v[1] or ""
  local cap, used, waiting, kept, rest = string.match(text, values_behind, values_words)
  local own, fence, lease = string.match(v[2] or "", record_beating)
  if not top or own ~= node or waiting ~= "0" or kept ~= values_calm or string.sub(text, 1, 2) ~= values_known then
    return nil
  end
  local now, due = string.sub(values_us(t), 1, values_millis), string.sub(text, values_due, values_due + 12)
  local score = redis.call("ZSCORE", keys[2], "h:" .. claim)
  local was, ends = score and score - score_hold, now + lease
  if not score or was <= now + 0 or was > ends or due <= now or ends + linger > values_last then
    return nil
  end
  local exp = math.max(math.ceil((ends + linger) / 1000) * 1000, string.sub(text, values_exp, values_exp + 12) + 0)
  local at = string.format("%d", exp)
  redis.call("PEXPIREAT", keys[2], at) -- first what needs no memory
  redis.call("PEXPIREAT", keys[1], at)
  redis.call("ZADD", keys[2], string.format("%d", score_hold + ends), "h:" .. claim)
  if was == due + 0 then
    due = string.format(values_ms, used == "1" and ends or earliest({ line = keys[2] }, { used = 1 }))
  end
  local busy = used ~= "1" and now or string.sub(text, values_busy, values_busy + 12)
  redis.call("HSET", keys[1], "v", string.sub(text, 1, values_head) .. string.format(values_ms, exp) .. values_gap
    .. due .. string.sub(text, values_ticket - 1, values_busy - 1) .. busy .. values_gap .. cap .. values_gap .. used
    .. values_gap .. waiting .. values_gap .. kept .. rest)
  return { "renewed", -1, 0, cap + 0, "held", lease + 0, fence + 0 }
end
