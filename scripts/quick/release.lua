--- @include "state/counts"
--- @include "state/record"
-- quick_release takes a hold back in the plain case: the claim is the node's own and
-- not detached, nobody waits, and nothing keeps the name's expiry away or has to move it.
-- That is what the general way does, in the fewest steps; see quick/grant. It returns the
-- reply, or nil, and has written nothing, in every other case; where all that is in the way
-- is that others wait, it also returns what quick_handoff goes on with. All arguments are
-- text.
local function quick_release(t, v, keys, claim, node, stays, linger)
  local cap, used, waiting = string.match(v[2] or "", counts_line)
  local mine = string.format(record_node_form, #node, node)
  if not cap or v[1] ~= "1" or not v[6] or v[7] or stays ~= "0" or string.sub(v[6], 1, #mine) ~= mine then
    return nil
  end
  local fence, weight = string.match(v[6], record_own, #mine + 1)
  if not weight then
    return nil
  end
  local left, exp, after = used - weight, tonumber(v[5]), tonumber(linger)
  local us = t[1] * 1000000 + t[2]
  local ms = (us - us % 1000) / 1000
  if left < 0 or not exp or ms + after > exp or waiting == "0" and left == 0 and exp > ms + 2 * after then
    return nil
  end
  local deadline = redis.call("ZSCORE", keys[2], "h:" .. claim)
  if not deadline then
    return nil
  end
  local reply = { deadline - ms > 0 and "released" or "expired", 0, tonumber(fence) }
  if waiting ~= "0" then
    return nil, { cap = cap, left = left, waiting = waiting - 1, us = us, ms = ms, fence = v[4], reply = reply }
  end
  redis.call("ZREM", keys[2], "h:" .. claim)
  redis.call("HDEL", keys[1], "c:" .. claim)
  redis.call("HSET", keys[1], "counts", string.format(counts_calm_form, cap, left))
  return reply
end
