--- @include "lib/int"
-- plainrenew takes the heartbeat of one claim in the plain case: it holds, by a lease
-- that renews and has been confirmed, nobody else holds and nobody waits. That is what
-- the script does that includes it, in the fewest steps; see plaingrant. It returns
-- the time left (ms) and the fence, or nil, and has written nothing, in every other
-- case. All arguments are text.
local function plainrenew(t, v, state, line, claim, node, mode, linger)
  local used = string.match(v[2] or "", "^%d+ (%d+) 0 0 0 0$")
  local mine = #node .. ":" .. node
  if not used or v[1] ~= "1" or mode ~= "beat" or not v[6] or v[7] or string.sub(v[6], 1, #mine) ~= mine then
    return nil
  end
  local fence, weight, lease = string.match(v[6], "^h %d+ (%d+) %d+ 0 (%d+) %S+ r %d+ (%d+) 0 ", #mine + 1)
  local exp = tonumber(v[5])
  if not fence or weight ~= used or not exp or exp == 0 then
    return nil
  end
  local us = t[1] * 1000000 + t[2]
  local ms = (us - us % 1000) / 1000
  local deadline = redis.call("ZSCORE", line, "h:" .. claim)
  if not deadline or deadline - ms <= 0 then
    return nil
  end
  local left = tonumber(lease)
  local wanted = math.ceil((ms + left + linger) / 1000) * 1000
  local expires = wanted > exp and int(wanted) or v[5]
  redis.call("PEXPIREAT", line, expires) -- first what needs no memory
  redis.call("ZADD", line, int(ms + left), "h:" .. claim)
  if wanted > exp then
    redis.call("HSET", state, "exp", expires)
    redis.call("PEXPIREAT", state, expires)
  end
  return left, tonumber(fence)
end
