--- @include "state/score"
--- @include "state/int"
--- @include "state/values"
--- @include "state/record"
--- @include "pool/counts"
--- @include "pool/wants"
--- @include "pool/settings"
--- @include "pool/free"
--- @include "fast/pool_counts"
--- @include "fast/pool_item"
-- fast_pool_release takes the hold of a resource back in the plain case: the pool is kept, nobody stands
-- in line, or waits for this resource, the claim is the node's own and not detached, leaves no tombstone
-- and asks for nothing (wish). The resource has not expired and no settings of its own, and is to rest by a
-- cooldown alone, and only if one at a time may hold it. That is what the general way does, in the fewest steps;
-- see fast/acquire. It returns the reply, or nil, and has written nothing, in every other case; and what
-- fast_pool_handoff goes on with, where somebody stands in line, nothing is free, and nobody else may hold it.
local function fast_pool_release(t, v, keys, claim, owned, wish)
  local text, record, counts, key, sub, format = v[1], v[2], v[3], v[4], string.sub, string.format
  local call = redis.call
  local fence = values_now(t)
  if owned == "" or wish or not text or not record or not counts or not key or text >= values_known .. fence then
    return nil
  end
  local line, behind = sub(text, values_waiting, values_calm_end), sub(counts, pool_counts_parked)
  local settings, parked, stands = settings_none, false, false
  if line ~= values_alone or behind ~= pool_counts_bare then
    settings, parked, stands = plain_line(line, behind)
  end
  local phase, from = sub(record, 1, record_phase), record_held_by + record_gap_at
  if not settings or phase ~= record_holds and phase ~= record_given
    or sub(owned, record_gap_at, record_gap_at) ~= record_gap
    or sub(record, record_held_by, record_held_by + #owned - 1) ~= owned then
    return nil
  end
  local kind, cooldown = "o", "0"
  if sub(record, (string.find(record, wants_colon, from, true) or 0) - 1) ~= wants_bare then
    kind, cooldown = string.match(record_extra(sub(record, from)), wants_cools)
  end
  local pooled = kind and settings ~= settings_none and kind ~= "a" and string.match(settings, settings_cools) or "-"
  if pooled ~= "-" and pooled - cooldown > 0 then
    cooldown = pooled
  end
  local now, used, due = sub(fence, 1, values_now_end), sub(text, values_used, values_used_end),
    sub(text, values_due, values_due_end)
  local ends, left = due, values_unused
  if used ~= values_one and not stands then
    ends, left = sub(call("ZSCORE", keys[2], "h:" .. claim) or "", score_deadline), format("%d", used - 1)
  end
  if not kind or ends <= now or used <= values_unused then
    return nil
  end
  local item, had, most, alone = plain_give(call("HGET", keys[3], "i" .. key), kind ~= "s" and claim, now)
  if not item or kind ~= "s" and cooldown ~= "0" and not alone then
    return nil
  end
  local reply, head = sub(record, record_fence, record_fence_end), sub(text, 1, values_head)
  if stands then
    return nil, alone and not parked and cooldown == "0"
      and plain_none(counts, sub(counts, 1, pool_counts_resources_end), used) and {
      head = values_known .. fence, now = now, left = used == values_one and 0 or 1, most = used == values_one and 1 or 2,
      waiting = sub(line, 1, values_pool_from - 2) + 0, key = key, item = sub(item, 1, -3) .. "1" .. item_gap,
      reply = reply,
    }
  end
  local listed = kind ~= "s" and cooldown == "0" and had == most and 1 or 0
  local all = plain_counts(counts, 1 - listed, (had == "1" and 1 or 0) - listed)
  if parked and (call("HEXISTS", keys[1], "l:" .. key) == 1
    or call("ZRANGEBYSCORE", keys[2], score_first_patience, score_waited .. now, "LIMIT", "0", "1")[1])
    or call("ZREM", keys[2], "h:" .. claim) ~= 1 then
    return nil
  end

  call("HDEL", keys[1], "c:" .. claim, "r:" .. claim)
  if kind ~= "s" and cooldown ~= "0" then
    local rests = int(math.min(now + cooldown, score_forever))
    call("ZADD", keys[2], int(score_rest + rests), "e:" .. key)
    item = string.gsub(item, item_awake, "%1" .. rests .. "%2")
  elseif kind ~= "s" and had == most then
    call("ZADD", keys[4], fence, key, free_mark, "")
    head = values_known .. fence
  end
  if kind ~= "s" then
    call("HSET", keys[3], "i" .. key, item)
  end
  if left == values_unused then
    due = values_none
  elseif ends == due then
    due = call("ZRANGEBYSCORE", keys[2], score_first_hold, score_last_hold, "WITHSCORES", "LIMIT", "0", "1")[2]
    due = due and sub(due, score_deadline) or values_none
  end
  call("HSET", keys[1],
    "v", head .. sub(text, values_head + 1, values_due - 1) .. due .. sub(text, values_due_end + 1, values_busy - 1)
      .. now .. values_gap .. left .. sub(text, values_used_end + 1))
  if all then
    call("HSET", keys[1], "pool", all)
  end
  return reply
end
