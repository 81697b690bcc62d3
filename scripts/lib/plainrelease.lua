-- plainrelease takes a hold back in the plain case: the claim is the node's own and
-- not detached, nobody waits, and nothing keeps the name's expiry away or has to move it.
-- That is what the script does that includes it, in the fewest steps; see plaingrant.
-- It returns the status and the fence of the hold, or nil, and has written nothing, in
-- every other case; where all that is in the way is that others wait, it also returns
-- what plainhandoff goes on with. All arguments are text.
local function plainrelease(t, v, state, line, claim, node, stays, linger)
  local cap, used, waiting = string.match(v[2] or "", "^(%d+) (%d+) (%d+) 0 0 0$")
  local mine = #node .. ":" .. node
  if not cap or v[1] ~= "1" or not v[6] or v[7] or stays ~= "0" or string.sub(v[6], 1, #mine) ~= mine then
    return nil
  end
  local was, weight = string.match(v[6], "^[gh] %d+ (%d+) %d+ %d+ (%d+)", #mine + 1)
  if not weight then
    return nil
  end
  local left, exp, after = used - weight, tonumber(v[5]), tonumber(linger)
  local us = t[1] * 1000000 + t[2]
  local ms = (us - us % 1000) / 1000
  if left < 0 or not exp or ms + after > exp or waiting == "0" and left == 0 and exp > ms + 2 * after then
    return nil
  end
  local deadline = redis.call("ZSCORE", line, "h:" .. claim)
  if not deadline then
    return nil
  end
  local status = deadline - ms > 0 and "released" or "expired"
  if waiting ~= "0" then
    return nil, nil, {
      status = status, was = was, cap = cap, left = left, waiting = waiting - 1, us = us, ms = ms, fence = v[4],
    }
  end
  redis.call("ZREM", line, "h:" .. claim)
  redis.call("HDEL", state, "c:" .. claim)
  redis.call("HSET", state, "counts", cap .. " " .. left .. " 0 0 0 0")
  return status, was
end
