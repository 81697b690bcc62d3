--- @include "state/score"
--- @include "state/values"
--- @include "pool/counts"
-- fast_pool_wait is what fast_wait goes on with for a claim on a pool in which nothing is free, nil where
-- something may have to be done first: bindings have moments, none of which has passed, and nothing else has one.
local function fast_pool_wait(text, counts, line, now, due, wait)
  local waiting, sub = tonumber(string.sub(text, values_waiting, values_waiting_end)), string.sub
  local first = redis.call("ZRANGEBYSCORE", line, score_first_op, "+inf", "WITHSCORES", "LIMIT", "0", "1")
  if not waiting
    or first[1] ~= "-" and (sub(first[1] or "", 1, 2) ~= "u:" or first[2] <= score_before_bind .. now) then
    return nil
  end
  return {
    text = text, now = now, last = sub(text, values_ticket, values_ticket_end), due = due,
    used = sub(text, values_used, values_used_end), waiting = waiting, wait = wait,
    counts = string.format("%d", sub(counts, 1, pool_counts_moves_end) + 1) .. sub(counts, pool_counts_moves_end + 1),
    resources = sub(counts, pool_counts_resources, pool_counts_resources_end) - values_base,
  }
end
