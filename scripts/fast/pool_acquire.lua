--- @include "state/score"
--- @include "state/values"
--- @include "state/record"
--- @include "pool/counts"
--- @include "pool/settings"
--- @include "pool/free"
--- @include "pool/binding"
--- @include "fast/pool_counts"
--- @include "fast/pool_wants"
--- @include "fast/pool_item"
-- fast_pool_acquire answers a new claim on a pool in the plain case: the pool is kept, nobody stands in line, no
-- hold and no rest has ended, the claim takes what comes first by the policy, or what it is bound to if that is free,
-- its lease is no longer than its wait lease, and its process says nothing else than the settings, or was told of them.
-- The resource is not to rest, and has not expired. See fast/acquire. It returns the reply, or nil, and has left
-- nothing written, in every other case; and what fast_pool_wait goes on with, where nothing is free.
local function fast_pool_acquire(t, v, keys, linger, claim, owned, left, opinions, told)
  local text, counts, fence, sub, format = v[1], v[3], values_now(t), string.sub, string.format
  local call = redis.call
  local head = values_known .. fence
  if not text or v[2] or not counts or text >= head then
    return nil
  end
  local now, resources = sub(fence, 1, values_now_end), sub(counts, 1, pool_counts_resources_end)
  local used = sub(text, values_used, values_used_end)
  local line, behind = sub(text, values_waiting, values_calm_end), sub(counts, pool_counts_parked)
  local settings, parked, stands, policy, binds = settings_none, false, false, "-", "-"
  if line ~= values_alone or behind ~= pool_counts_bare then
    settings, parked, stands = plain_line(line, behind)
  end
  local wait, lease, max, kind, lasts, bind = nil, left, "0", "o", "-", ""
  if left == "" then
    wait, lease, max, kind, lasts, bind = plain_asks(owned)
  end
  if settings and (opinions ~= "" or settings ~= settings_none) then
    policy, binds = plain_agrees(settings, opinions, told, lease, max)
  end
  local due, ticket = sub(text, values_due, values_due_end), sub(text, values_due_end + 1, values_busy - 1)
  if not settings or not kind or not policy or due <= now then
    return nil
  elseif plain_none(counts, resources, used) then
    return nil, kind == "o" and bind == "" and not parked and now, due
  elseif stands or left == "" and (lease == "0" or lease - wait > 0) or policy == "r" or values_gap .. now <= ticket then
    return nil
  end
  if (used ~= values_unused or sub(counts, pool_counts_others, pool_counts_others_end) ~= pool_counts_none)
    and call("ZRANGEBYSCORE", keys[2], score_first_rest, score_rested .. now, "LIMIT", "0", "1")[1] then
    return nil
  end
  local at = bind ~= "" and { line = keys[2], bindings = keys[5], ms = now + 0 }
  local key, until_then = plain_pick(at, keys[4], bind, policy)
  local item, more, had = plain_take(key and call("HGET", keys[3], "i" .. key), claim, now)
  if not item or key == "" or parked and (call("HEXISTS", keys[1], "l:" .. key) == 1
    or call("ZRANGEBYSCORE", keys[2], score_first_patience, score_waited .. now, "LIMIT", "0", "1")[1]) then
    return nil -- somebody waits for that resource, or has waited for another one long enough
  end
  local ends, limit, exp = now + lease, record_unlimited, sub(text, values_exp, values_due - 2)
  if max ~= "0" then
    limit = format(values_ms, now + max)
    ends = math.min(ends, limit)
  end
  local own, last = kind == "o", kind == "o" and more == 0
  local all = plain_counts(counts, last and 0 or -1, own and (last and 1 or 0) - (had == "0" and 1 or 0) or 0)
  used = used == values_unused and values_one or format("%d", used + 1)
  local deadline, far, many = format(values_ms, ends), ends + linger - exp > 0, left == "" and resources - values_base
  if call("ZADD", keys[2], score_held .. deadline, "h:" .. claim, score_kept, "-") == 2 then
    call("ZREM", keys[2], "h:" .. claim, "-") -- somebody has deleted the line
    return nil
  end
  if last then
    call("ZREM", keys[4], key)
  else
    head = values_known .. format(values_fence, fence + 1)
    call("ZADD", keys[4], sub(head, values_fence_from), key, free_mark, "")
  end
  if own then
    call("HSET", keys[3], "i" .. key, item)
  end
  if at then
    binding_begin(at, bind, key, tonumber(lasts) or tonumber(binds) or settings_bindfor, until_then or 0)
  end
  if far then
    exp = format(values_ms, math.min(math.ceil((ends + linger) / 1000) * 1000, values_last))
  end
  if deadline < due then
    due = deadline
  end
  call("HSET", keys[1],
    "v", head .. values_gap .. exp .. values_gap .. due .. ticket .. now .. values_gap .. used
      .. sub(text, values_used_end + 1),
    "c:" .. claim, record_holds .. now .. record_gap .. fence .. record_gap .. now .. record_gap .. limit .. record_gap
      .. owned,
    "r:" .. claim, key)
  if all then
    call("HSET", keys[1], "pool", all)
  end
  if left ~= "" then
    return fence .. pool_counts_gap .. resources .. pool_counts_gap .. key
  end
  return { "granted", now, fence, ends - now, 1, many, key }
end
