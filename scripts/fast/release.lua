--- @include "state/score"
--- @include "state/values"
--- @include "state/record"
-- fast_release takes a hold back in the plain case: the name is fat, the claim is the node's own
-- and not detached, and it leaves no tombstone. Where nobody waits, that is all. Where the first
-- in line lives and fills the name, it is granted to that one, see fast_handoff. That is what the
-- general way does, in the fewest steps; see fast/acquire. owned is what the record has of the claim's node, secret
-- and weight, "" where there is more to do than to take it back; spare is how far behind the hold's deadline the name
-- may expire (ms). It looks at the clock, which is t, or false where nobody has asked yet, for a name of capacity 1
-- alone: a hold that has expired, and is still there, nobody has got yet. It returns the reply, or nil, and has written
-- nothing, in every other case; and what fast_handoff goes on with: what is still held, and the earliest deadline.
local function fast_release(t, v, keys, claim, owned, spare)
  local text, record, sub = v[1], v[2], string.sub
  local call = redis.call
  if owned == "" or v[3] or not text or not record or sub(text, values_calm_from, values_calm_end) ~= values_calm then
    return nil
  end
  local phase, held_by = sub(record, 1, record_phase), sub(record, record_held_by, record_held_by + #owned - 1)
  if phase ~= record_holds and phase ~= record_given or text >= values_newer then -- no former text is so long
    return nil
  end
  if held_by ~= owned then
    owned = sub(owned, 1, record_gap_at) .. record_none -- of a claim that had a thin name
    if sub(held_by, 1, #owned) ~= owned then
      return nil
    end
  end
  local due, used, left = sub(text, values_due, values_due_end), sub(text, values_used, values_used_end), 0
  local ends = due
  if used ~= values_one or sub(owned, -#record_alone) ~= record_alone then
    left = tonumber(used)
    left = left and left - values_base - string.match(owned, record_weight)
    used = left and string.format("%d", values_base + left)
  else
    used = values_unused
  end
  if not left or left < 0 then
    return nil
  elseif sub(text, values_waiting, values_waiting_end) ~= values_nobody then
    return nil, left, due
  elseif left > 0 then
    ends = call("ZSCORE", keys[2], "h:" .. claim)
    ends = ends and sub(ends, score_deadline)
  end
  if not ends then
    return nil
  end
  -- What would stay too long is the general way's, and what has been calm and becomes thin.
  if left == 0 and sub(text, values_exp, values_due - 2) - due > spare + 0 then
    return nil
  elseif sub(text, values_cap, values_cap_end) == values_one then
    local now = sub(values_us(t or redis.call("TIME")), values_fence_from, values_millis)
    if left == 0 and now - sub(text, values_busy, values_busy_end) >= 10000
      and now - sub(text, values_ticket, values_ticket_end) >= 10000 then
      return nil
    end
  end
  if call("ZREM", keys[2], "h:" .. claim) ~= 1 then
    return nil
  end
  call("HDEL", keys[1], "c:" .. claim)
  if left == 0 then
    due = values_none
  elseif ends == due then
    due = call("ZRANGEBYSCORE", keys[2], score_first_hold, score_last_hold, "WITHSCORES", "LIMIT", "0", "1")[2]
    due = due and sub(due, score_deadline) or values_none
  end
  call("HSET", keys[1], "v", sub(text, 1, values_due - 1) .. due .. sub(text, values_due_end + 1, values_used - 1)
    .. used .. sub(text, values_waiting - 1))
  return sub(record, record_fence, record_fence_end)
end
