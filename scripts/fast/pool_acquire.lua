--- @include "state/score"
--- @include "state/int"
--- @include "state/values"
--- @include "state/record"
--- @include "pool/counts"
--- @include "pool/wants"
--- @include "pool/settings"
--- @include "pool/item"
--- @include "pool/free"
--- @include "pool/binding"
--- @include "fast/pool_wait"
-- fast_pool_acquire answers a new claim on a pool in the plain case: the pool is kept, nobody stands in line, no
-- hold and no rest has ended, the claim takes what comes first by the policy, or what it is bound to
-- if that is free, its lease is no longer than its wait lease, and its process says nothing else than the
-- settings, or has been told of them. The resource is not to rest, and has not expired. That is what the
-- general way does, in the fewest steps; see fast/acquire. It returns the reply, or nil, and has written nothing, in
-- every other case; and what fast_wait goes on with, where nothing is free, and the claim wants any for its own.
local function fast_pool_acquire(t, v, top, keys, linger, node, claim, terms, opinions, told)
  local resources, free, leased, between, moves, parked, behind = string.match(v[3] or "", pool_counts_words)
  if not top or v[2] or not moves then
    return nil
  end
  local former, exp, due, ticket, used, waiting, rest = string.match(v[1] or "", values_kept)
  if not former or waiting - parked ~= values_line and free ~= "0" then
    return nil
  end
  local weight, wait, lease, max = string.match(terms, record_asks)
  local kind, lasts, bind = string.match(record_extra(terms), wants_plain)
  local policy, binds, longest, limit
  if behind ~= settings_unset then
    policy, binds, longest, limit = string.match(behind, settings_asked)
  end
  local fence = values_us(t)
  local now = string.sub(fence, values_fence_from, values_millis)
  if weight ~= "1" or not kind or due <= now
    or opinions and not string.find(behind, opinions, settings_from) and string.sub(behind, settings_from) ~= told
    or policy and longest ~= "-" and longest ~= "0" and (lease == "0" or lease - longest > 0)
    or policy and limit ~= "-" and limit ~= "0" and (max == "0" or max - limit > 0) then
    return nil
  elseif free == "0" then
    return nil, kind == "o" and bind == "" and parked == "0" and fast_pool_wait(v[1], keys[2], now, {
      last = ticket, due = due, used = used, waiting = waiting + 0, wait = wait,
      counts = resources .. pool_counts_gap .. free .. pool_counts_gap .. leased .. pool_counts_gap .. between
        .. pool_counts_gap .. int(moves + 1) .. pool_counts_gap .. parked .. pool_counts_gap .. behind,
    })
  elseif policy == "r" or lease == "0" or lease - wait > 0 or now <= ticket or fence <= values_known .. former
    or free ~= resources and redis.call("ZRANGEBYSCORE", keys[2], int(score_rest), int(score_rest + now), "LIMIT", "0",
      "1")[1] then
    return nil
  end
  local at, bound, until_then = { line = keys[2], bindings = keys[5], ms = now + 0 }, nil, nil
  if bind ~= "" then
    bound, until_then = binding_of(at, bind)
  end
  local rank = policy == "m" and "-2" or "0"
  local key = bound or redis.call("ZRANGE", keys[4], rank, rank)[1]
  local item, most, _, _, count, claims = item_calm(key and redis.call("HGET", keys[3], "i" .. key), now)
  local left = item and most - count - 1
  if not item or key == "" or left < 0 or parked ~= "0" and (redis.call("HEXISTS", keys[1], "l:" .. key) == 1
    or redis.call("ZRANGEBYSCORE", keys[2], int(score_patience), int(score_patience + now), "LIMIT", "0", "1")[1]) then
    return nil -- somebody waits for that resource, or has waited for another one long enough
  end

  local ends, last = now + lease, record_unlimited
  if max ~= "0" then
    last = string.format(values_ms, now + max)
    ends = math.min(ends, last)
  end
  redis.call("ZADD", keys[2], int(score_hold + ends), "h:" .. claim) -- first what a full server refuses
  local own = kind == "o"
  moves = int(moves + 1)
  if own and left == 0 then
    redis.call("ZREM", keys[4], key)
    free = int(free - 1)
  elseif free ~= "1" then
    redis.call("ZADD", keys[4], moves, key, free_mark, "")
  end
  if own then
    redis.call("HSET", keys[3], "i" .. key, item .. int(count + 1) .. item_gap .. claims .. claim .. item_gap)
    leased = count == "0" and int(leased + 1) or leased
  end
  if bind ~= "" then
    binding_begin(at, bind, key, tonumber(lasts) or tonumber(binds) or settings_bindfor, until_then or 0)
  end
  if ends + linger - exp > 0 then
    exp = string.format(values_ms, math.min(math.ceil((ends + linger) / 1000) * 1000, values_last))
  end
  if due - ends > 0 then
    due = string.format(values_ms, ends)
  end
  redis.call("HSET", keys[1],
    "v", fence .. values_gap .. exp .. values_gap .. due .. values_gap .. ticket .. values_gap .. now .. values_gap
      .. int(used + 1) .. values_gap .. waiting .. values_gap .. rest,
    "c:" .. claim, record_holds .. now .. record_gap .. string.sub(fence, values_fence_from) .. record_gap .. now
      .. record_gap .. last .. record_gap .. node .. record_gap .. terms,
    "r:" .. claim, key,
    "pool", resources .. pool_counts_gap .. free .. pool_counts_gap .. leased .. pool_counts_gap .. between
      .. pool_counts_gap .. moves .. pool_counts_gap .. parked .. pool_counts_gap .. behind)
  return { "granted", now, string.sub(fence, values_fence_from), ends - now, 1, resources, key }
end
