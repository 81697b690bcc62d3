--- @include "state/score"
--- @include "state/values"
--- @include "state/record"
-- fast_renew takes the heartbeat of one claim in the plain case: the name is fat, the claim
-- holds, by a lease that renews and has been confirmed, nobody waits, and no hold has expired.
-- That is what the general way does, in the fewest steps; see fast/acquire. It returns the reply,
-- or nil, and has written nothing, in every other case. mode is nil where there is more than one
-- claim.
local function fast_renew(t, v, top, keys, linger, node, claim, mode)
  local text, sub, format = v[1], string.sub, string.format
  local call = redis.call
  if mode ~= "beat" or v[3] or not top or not text or sub(text, values_calm_from, values_calm_end) ~= values_calm
    or sub(text, values_waiting, values_waiting_end) ~= values_nobody or sub(text, 1, #values_known) ~= values_known then
    return nil
  end
  local fence, own, lease = string.match(v[2] or "", record_beating)
  local now, due = sub(values_us(t), values_fence_from, values_millis), sub(text, values_due, values_due_end)
  local score = own == node and due > now and call("ZSCORE", keys[2], "h:" .. claim)
  if not score then
    return nil
  end
  local was, ends = sub(score, score_deadline), now + lease
  local deadline = format(values_ms, ends)
  if was <= now or was > deadline or ends + linger > values_last then
    return nil
  end
  local exp = sub(text, values_exp, values_due - 2)
  if ends + linger - exp > 0 then
    exp = format(values_ms, math.ceil((ends + linger) / 1000) * 1000)
  end
  call("PEXPIREAT", keys[2], exp) -- first what needs no memory
  call("PEXPIREAT", keys[1], exp)
  call("ZADD", keys[2], score_held .. deadline, "h:" .. claim)
  if was == due then
    due = deadline
    if sub(text, values_used, values_used_end) ~= values_one then
      due = call("ZRANGEBYSCORE", keys[2], score_first_hold, score_last_hold, "WITHSCORES", "LIMIT", "0", "1")[2]
      due = sub(due, score_deadline)
    end
  end
  call("HSET", keys[1], "v", sub(text, 1, values_head) .. values_gap .. exp .. values_gap .. due
    .. sub(text, values_due_end + 1))
  return { "renewed", -1, 0, sub(text, values_cap, values_cap_end) - values_base, "held", lease, fence }
end
