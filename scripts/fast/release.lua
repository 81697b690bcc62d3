--- @include "state/score"
--- @include "state/values"
--- @include "state/record"
-- fast_release takes a hold back in the plain case: the name is fat, the claim is the node's own
-- and not detached, and it leaves no tombstone. Where nobody waits, that is all. Where the first
-- in line lives and fills the name, it is granted to that one, see fast_handoff. That is what the
-- general way does, in the fewest steps; see fast/acquire. It returns the reply, or nil, and has
-- written nothing, in every other case; and what fast_handoff goes on with.
local function fast_release(t, v, keys, linger, node, claim, stays)
  local text, record, sub = v[1], v[2], string.sub
  local call = redis.call
  if stays ~= "0" or v[3] or not text or not record or sub(text, values_calm_from, values_calm_end) ~= values_calm
    or sub(text, 1, #values_known) ~= values_known then
    return nil
  end
  local phase, behind, weight = sub(record, 1, record_phase), record_held_by + #node + 1, "1"
  if phase ~= record_holds and phase ~= record_given or sub(record, record_held_by, behind - 1) ~= node .. record_gap then
    return nil
  elseif sub(record, behind + record_secret, behind + record_secret + 2) ~= record_alone
    and sub(record, behind, behind + 3) ~= record_none then
    weight = string.match(record, record_weight, behind)
  end
  local head, used = values_us(t), tonumber(sub(text, values_used, values_used_end))
  local now, due, exp = sub(head, values_fence_from, values_millis), sub(text, values_due, values_due_end),
    sub(text, values_exp, values_due - 2)
  local left = used and weight and used - weight - values_base or -1
  if left < 0 or now + linger - exp > 0 then
    return nil
  end
  local ends = due
  if left > 0 then
    ends = call("ZSCORE", keys[2], "h:" .. claim)
    ends = ends and sub(ends, score_deadline)
  end
  if not ends or ends <= now then
    return nil
  end
  local reply = { "plain", sub(record, record_fence, record_fence_end) }
  local waiting = sub(text, values_waiting, values_waiting_end)
  if waiting ~= values_nobody then
    local line = tonumber(waiting)
    return nil, line and { head = head, now = now, left = left, waiting = line, reply = reply }
  end
  -- What has been calm becomes thin, and what would stay too long is the general way's.
  local busy = sub(text, values_busy, values_busy_end)
  if left == 0 and (exp - now > 2 * linger or now - busy >= 10000
    and now - sub(text, values_ticket, values_ticket_end) >= 10000) or call("ZREM", keys[2], "h:" .. claim) ~= 1 then
    return nil
  end
  call("HDEL", keys[1], "c:" .. claim)
  if left == 0 then
    due = values_none
  elseif ends == due then
    due = call("ZRANGEBYSCORE", keys[2], score_first_hold, score_last_hold, "WITHSCORES", "LIMIT", "0", "1")[2]
    due = due and sub(due, score_deadline) or values_none
  end
  if left > 1 then
    busy = now
  end
  call("HSET", keys[1], "v", sub(text, 1, values_due - 1) .. due .. sub(text, values_due_end + 1, values_busy - 1) .. busy
    .. values_gap .. string.format("%d", values_base + left) .. sub(text, values_waiting - 1))
  return reply
end
