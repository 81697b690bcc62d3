--- @include "state/score"
--- @include "state/int"
--- @include "state/values"
--- @include "state/record"
--- @include "line/earliest"
--- @include "pool/counts"
--- @include "pool/wants"
--- @include "pool/settings"
--- @include "pool/item"
--- @include "pool/free"
-- fast_pool_release takes the hold of a resource back in the plain case: the pool is kept, nobody stands
-- in line, or waits for this resource, the claim is the node's own and not detached, leaves no tombstone
-- and asks for no rest and no expiry. The resource has not expired and no settings of its own, and is to
-- rest by a cooldown alone, and only if one at a time may hold it. That is what the general way does, in
-- the fewest steps; see fast/acquire. It returns the reply, or nil, and has written nothing, in every
-- other case; and what fast_pool_handoff goes on with, where somebody stands in line, nothing is free, and nobody else
-- may hold the resource.
local function fast_pool_release(t, v, top, keys, linger, node, claim, stays, asked, expires)
  local former, exp, due, ticket, used, waiting, rest = string.match(v[1] or "", values_kept)
  local resources, free, leased, between, moves, parked, behind = string.match(v[3] or "", pool_counts_words)
  local key = v[4]
  local alone = waiting and moves and waiting - parked == values_line
  if not top or not former or not moves or not alone and (parked ~= "0" or free ~= "0")
    or used == values_unused or stays ~= "0"
    or asked ~= "0" or expires ~= "0" or not key then
    return nil
  end
  local fence, own, terms = string.match(v[2] or "", record_owned)
  if own ~= node then
    return nil
  end
  local kind, cooldown = string.match(record_extra(terms), wants_cools)
  local pooled = behind ~= settings_unset and kind ~= "a" and string.match(behind, settings_cools) or "-"
  if pooled ~= "-" and pooled - cooldown > 0 then
    cooldown = pooled
  end
  local head = values_us(t)
  local now = string.sub(head, values_fence_from, values_millis)
  local score = redis.call("ZSCORE", keys[2], "h:" .. claim)
  local item, most, expiry, named, count, claims = item_calm(redis.call("HGET", keys[3], "i" .. key), now)
  local mine, others = claim .. item_gap, ""
  if item and kind ~= "s" and claims ~= mine then
    local from = string.find(item_gap .. claims, item_gap .. mine, 1, true)
    others = from and string.sub(claims, 1, from - 1) .. string.sub(claims, from + #mine)
  end
  if not item or not score or not others or cooldown ~= "0" and (most ~= "1" or others ~= "")
    or parked ~= "0" and (redis.call("HEXISTS", keys[1], "l:" .. key) == 1 or redis.call("ZRANGEBYSCORE", keys[2],
      int(score_patience), int(score_patience + now), "LIMIT", "0", "1")[1]) then
    return nil
  end

  local ends, left = score - score_hold, used - 1 - values_base
  moves = int(moves + 1)
  if not alone then
    if kind == "s" or cooldown ~= "0" or most ~= "1" or others ~= "" or due <= now or now + linger - exp > 0
      or string.sub(v[1], values_cap, values_calm_end) ~= values_pool then
      return nil
    end
    return nil, {
      head = head, now = now, left = left, most = left + 1, waiting = waiting + 0, key = key,
      item = item .. count .. item_gap, reply = { "released", 0, fence, 1 },
      counts = resources .. pool_counts_gap .. free .. pool_counts_gap .. leased .. pool_counts_gap .. between
        .. pool_counts_gap .. moves .. pool_counts_gap .. parked .. pool_counts_gap .. behind,
    }
  end
  redis.call("ZREM", keys[2], "h:" .. claim)
  redis.call("HDEL", keys[1], "c:" .. claim, "r:" .. claim)
  if kind ~= "s" then
    local rests = cooldown ~= "0" and int(math.min(math.min(now, ends) + cooldown, score_forever)) or "0"
    if rests - now > 0 then
      redis.call("ZADD", keys[2], int(score_rest + rests), "e:" .. key)
      item = string.format(item_rests, most, expiry, rests, named)
    else
      item = item .. int(count - 1) .. item_gap .. others
      if count == most then
        redis.call("ZADD", keys[4], moves, key, free_mark, "")
        free = int(free + 1)
      end
    end
    redis.call("HSET", keys[3], "i" .. key, item)
    leased = count == "1" and int(leased - 1) or leased
  end
  if due - ends == 0 then
    local low = left > 0 and earliest({ line = keys[2] }, { used = left }) or 0
    due = low > 0 and string.format(values_ms, math.min(low, values_last)) or values_none
  end
  local furthest = math.min(math.ceil((now + linger) / 1000) * 1000, values_last)
  if furthest - exp > 0 or left == 0 and waiting == values_nobody and exp - now > 2 * linger then
    exp = string.format(values_ms, furthest)
  end
  redis.call("HSET", keys[1],
    "v", values_known .. former .. values_gap .. exp .. values_gap .. due .. values_gap .. ticket .. values_gap .. now
      .. values_gap .. int(values_base + left) .. values_gap .. waiting .. values_gap .. rest,
    "pool", resources .. pool_counts_gap .. free .. pool_counts_gap .. leased .. pool_counts_gap .. between
      .. pool_counts_gap .. moves .. pool_counts_gap .. parked .. pool_counts_gap .. behind)
  return { ends - now > 0 and "released" or "expired", 0, fence, 1 }
end
