--- @include "state/counts"
--- @include "state/int"
--- @include "state/record"
-- quick_renew takes the heartbeat of one claim in the plain case: it holds, by a lease
-- that renews and has been confirmed, nobody else holds and nobody waits. That is what
-- the general way does, in the fewest steps; see quick/grant. It returns the reply, or nil,
-- and has written nothing, in every other case. All arguments are text; mode is nil where
-- there is more than one claim.
local function quick_renew(t, v, keys, claim, node, mode, linger)
  local cap, used = string.match(v[2] or "", counts_calm)
  local mine = string.format(record_node_form, #node, node)
  if not used or v[1] ~= "1" or mode ~= "beat" or not v[6] or v[7] or string.sub(v[6], 1, #mine) ~= mine then
    return nil
  end
  local fence, weight, lease = string.match(v[6], record_beating, #mine + 1)
  local exp = tonumber(v[5])
  if not fence or weight ~= used or not exp or exp == 0 then
    return nil
  end
  local us = t[1] * 1000000 + t[2]
  local ms = (us - us % 1000) / 1000
  local deadline = redis.call("ZSCORE", keys[2], "h:" .. claim)
  if not deadline or deadline - ms <= 0 then
    return nil
  end
  local left = tonumber(lease)
  local wanted = math.ceil((ms + left + linger) / 1000) * 1000
  local expires = wanted > exp and int(wanted) or v[5]
  redis.call("PEXPIREAT", keys[2], expires) -- first what needs no memory
  redis.call("ZADD", keys[2], int(ms + left), "h:" .. claim)
  if wanted > exp then
    redis.call("HSET", keys[1], "exp", expires)
    redis.call("PEXPIREAT", keys[1], expires)
  end
  return { "renewed", -1, 0, tonumber(cap), "held", left, tonumber(fence) }
end
