--- @include "state/score"
--- @include "state/int"
--- @include "state/values"
--- @include "state/record"
--- @include "line/earliest"
--- @include "pool/counts"
--- @include "fast/pool_counts"
-- fast_pool_renew takes the heartbeat of one claim on a pool, or its renewal, in the plain case: the
-- pool is kept, the claim holds, by a lease that renews and has been confirmed, nobody waits, no
-- hold has expired, and of rests, expiries, bindings and damage there are none. That is what the
-- general way does, in the fewest steps; see fast/acquire. It returns the reply, or nil, and has
-- written nothing, in every other case. mode is nil where there is more than one claim; one that
-- names a lease is plain where the hold has that lease already.
local function fast_pool_renew(t, v, top, keys, linger, node, claim, mode)
  local former, exp, due, ticket, used, waiting, rest = string.match(v[1] or "", values_kept)
  local counts, sub = v[3], string.sub
  local fence, own, lease = string.match(v[2] or "", record_beating)
  local behind = counts and sub(counts, pool_counts_parked)
  if not top or waiting ~= values_nobody or own ~= node or not counts
    or behind ~= pool_counts_bare and not plain_line(values_alone, behind)
    or mode ~= "beat" and mode ~= "renew" and mode ~= "renew " .. lease and mode ~= "keep " .. lease then
    return nil
  end
  local now = sub(values_us(t), values_fence_from, values_millis)
  local score = redis.call("ZSCORE", keys[2], "h:" .. claim)
  local was, ends = score and score - score_hold, now + lease
  if not score or was - now <= 0 or was > ends or due <= now or ends + linger > values_last
    or redis.call("ZRANGEBYSCORE", keys[2], int(score_rest), "+inf", "LIMIT", "0", "1")[1] ~= "-" then
    return nil
  end
  local resources = sub(counts, 1, pool_counts_resources_end) - values_base
  redis.call("PERSIST", keys[2]) -- first what needs no memory
  redis.call("ZADD", keys[2], int(score_hold + ends), "h:" .. claim)
  if was - due == 0 then
    due = string.format(values_ms, used == values_one and ends or earliest({ line = keys[2] }, { used = 1 }))
  end
  if ends + linger - exp > 0 then
    exp = string.format(values_ms, math.ceil((ends + linger) / 1000) * 1000)
  end
  redis.call("HSET", keys[1],
    "v", values_known .. former .. values_gap .. exp .. values_gap .. due .. values_gap .. ticket .. values_gap .. now
      .. values_gap .. used .. values_gap .. waiting .. values_gap .. rest)
  return { "renewed", -1, 0, resources, "held", lease + 0, fence + 0, v[4] or "" }
end
