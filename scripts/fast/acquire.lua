--- @include "state/score"
--- @include "state/values"
--- @include "state/record"
-- fast_acquire grants a new claim what it asks for in the plain case: the name is fat, nobody waits, no
-- hold has expired, and the claim fits. That is what the general way does, in the fewest steps, on
-- the texts as they are read: to reckon or to format costs more than a command. A test compares the
-- two. It returns the reply, or nil, and has left nothing written, in every other case; and what
-- fast_wait goes on with, where the claim may have to wait. Numbers that a call gives are text. owned is
-- the claim's node with its terms; lease is that of a plain claim (ms), "" for another one; calm are the words of
-- the values from waiting to pause as they are in the plain case.
local function fast_acquire(t, v, keys, linger, claim, owned, lease, calm)
  local text, sub, format = v[1], string.sub, string.format
  local call = redis.call
  if not text or v[2] or text >= values_newer then
    return nil
  end
  local head, due, used = values_us(t), sub(text, values_due, values_due_end), sub(text, values_used, values_used_end)
  local now, most, taken = sub(head, values_fence_from, values_millis), sub(calm, values_calm_cap, values_calm_cap_end),
    values_base
  if used ~= values_unused then
    taken = tonumber(used)
  end
  if due <= now or not taken or used < values_unused then
    return nil
  end
  local weight, wait, max, fits, all = 1, nil, "0", used < most, values_one
  if lease == "" then
    weight, wait, lease, max = string.match(owned, record_asking)
    fits = taken + weight - most <= 0
  end
  if not fits or sub(text, values_waiting, values_calm_end) ~= calm then
    if used < most or weight + values_base - most > 0 then
      return nil -- it would fit, and stands behind others; or it never will
    end
    return nil, now, due
  end
  local exp, between = sub(text, values_exp, values_due - 2), values_used
  if now <= sub(text, values_ticket, values_ticket_end) or sub(text, 1, values_head) >= head then
    return nil
  end
  local limit, phase, busy = record_no_limit, record_holds, ""
  local ends = now + lease
  if wait then
    if lease == "0" or lease - wait > 0 then -- what is more than the wait lease is still to be confirmed
      phase, busy, between, ends = record_given, now .. values_gap, values_busy, now + wait
    elseif max ~= "0" then
      limit = format(values_ms, now + max)
      ends, limit = math.min(ends, limit), record_gap .. limit .. record_gap
    end
  end
  local deadline, far = format(values_ms, ends), ends + linger - exp > 0 -- reckoned before anything is written
  if call("ZADD", keys[2], score_held .. deadline, "h:" .. claim, score_kept, "-") == 2 then
    call("ZREM", keys[2], "h:" .. claim, "-") -- somebody has deleted the line
    return nil
  end
  if taken == values_base + score_crowd then
    call("ZADD", keys[2], score_kept, score_long)
    call("ZREM", keys[2], score_long)
  end
  if deadline < due then
    due = deadline
  end
  if far then
    exp = format(values_ms, math.min(math.ceil((ends + linger) / 1000) * 1000, values_last))
    call("PEXPIREAT", keys[1], exp)
    call("PEXPIREAT", keys[2], exp)
  end
  if taken > values_base or weight ~= 1 then
    all = format("%d", taken + weight)
  end
  local fence = sub(head, values_fence_from)
  call("HSET", keys[1],
    "v", head .. values_gap .. exp .. values_gap .. due .. sub(text, values_due_end + 1, between - 1) .. busy
      .. all .. sub(text, values_used_end + 1),
    "c:" .. claim, phase .. now .. record_gap .. fence .. record_gap .. now .. limit .. owned)
  if not wait then
    return fence
  end
  return { "granted", now, fence, ends - now, phase == record_holds and 1 or 0, most - values_base }
end
