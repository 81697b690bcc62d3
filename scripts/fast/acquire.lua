--- @include "state/score"
--- @include "state/values"
--- @include "state/record"
-- fast_acquire grants a new claim what it asks for in the plain case: the name is fat, nobody waits, no
-- hold has expired, and the claim fits. That is what the general way does, in the fewest steps, on
-- the texts as they are read: to reckon or to format costs more than a command. A test compares the
-- two. It returns the reply, or nil, and has left nothing written, in every other case; and what
-- fast_wait goes on with, where the claim may have to wait. Numbers that a call gives are text. left
-- and wait are the lease and the wait lease of a plain claim (ms), "" for another one.
local function fast_acquire(t, v, keys, linger, node, claim, terms, capacity, left, wait)
  local text, sub, format = v[1], string.sub, string.format
  local call = redis.call
  if not text or v[2] or sub(text, values_cap, values_calm_end) ~= capacity .. values_gap .. values_calm then
    return nil
  end
  local head, due, used = values_us(t), sub(text, values_due, values_due_end), sub(text, values_used, values_used_end)
  local now, last = sub(head, values_fence_from, values_millis), sub(text, values_ticket, values_ticket_end)
  local waiting, weight, lease, max = sub(text, values_waiting, values_waiting_end), 1, left, "0"
  local taken = tonumber(used)
  if due <= now or not taken or taken < values_base or sub(text, 1, #values_known) ~= values_known then
    return nil
  elseif left == "" then
    weight, wait, lease, max = string.match(terms, record_asks)
  end
  taken = taken + weight
  if waiting ~= values_nobody or taken - capacity > 0 then
    if used < capacity or weight + values_base - capacity > 0 then
      return nil -- it would fit, and stands behind others; or it never will
    end
    local line = tonumber(waiting)
    return nil, line and { text = text, now = now, last = last, due = due, used = used, waiting = line, wait = wait }
  elseif now <= last or sub(text, 1, values_head) >= head then
    return nil
  end
  local fence, limit, phase, sure = sub(head, values_fence_from), record_unlimited, record_holds, true
  local busy, exp = sub(text, values_busy, values_busy_end), sub(text, values_exp, values_due - 2)
  local ends
  if taken > values_base + 1 then
    busy = now
  end
  if lease == "0" or left == "" and lease - wait > 0 then -- what is more than the wait lease is still to be confirmed
    phase, sure, busy, ends = record_given, false, now, now + wait
  else
    ends = now + lease
    if max ~= "0" then
      limit = format(values_ms, now + max)
      ends = math.min(ends, limit)
    end
  end
  local deadline, far = format(values_ms, ends), ends + linger - exp > 0
  if call("ZADD", keys[2], score_held .. deadline, "h:" .. claim, score_kept, "-") == 2 then
    call("ZREM", keys[2], "h:" .. claim, "-") -- somebody has deleted the line
    return nil
  end
  if deadline < due then
    due = deadline
  end
  if far then
    exp = format(values_ms, math.min(math.ceil((ends + linger) / 1000) * 1000, values_last))
    call("PEXPIREAT", keys[1], exp)
    call("PEXPIREAT", keys[2], exp)
  end
  call("HSET", keys[1],
    "v", head .. values_gap .. exp .. values_gap .. due .. values_gap .. last .. values_gap .. busy .. values_gap
      .. format("%d", taken) .. sub(text, values_used_end + 1),
    "c:" .. claim, phase .. now .. record_gap .. fence .. record_gap .. now .. record_gap .. limit .. record_gap .. node
      .. record_gap .. terms)
  if left ~= "" then
    return { "plain", fence }
  end
  return { "granted", now, fence, ends - now, sure and 1 or 0, capacity - values_base }
end
