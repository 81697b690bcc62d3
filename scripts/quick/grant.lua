--- @include "state/counts"
--- @include "state/record"
-- quick_grant grants at once in the plain case: the name is known and calm (nobody
-- waits, nothing keeps its expiry away or has to move it), the claim is new and fits,
-- renews no later than it would wait, and has no maximum hold. That is what the general
-- way does, in the fewest steps, on the texts as they are read: numbers cost more than
-- commands. A test holds the two to the same. It returns the reply, or nil, and has
-- written nothing, in every other case. All arguments are text but setting, which the
-- reply has.
local function quick_grant(t, v, keys, claim, node, tail, weight, capacity, wait, lease, max, linger, setting)
  local cap, used = string.match(v[2] or "", counts_calm)
  if cap ~= capacity or v[1] ~= "1" or v[6] or max ~= "0" or lease == "0" then
    return nil
  end
  local length, exp, after = tonumber(lease), tonumber(v[5]), used + weight
  local us = t[1] * 1000000 + t[2]
  local ms, fence = (us - us % 1000) / 1000, string.format("%d", us)
  local ticket = string.sub(fence, 1, -4)
  if after > cap + 0 or length > wait + 0 or not exp or ms + length + linger > exp -- never is 0
    or not v[4] or #v[4] ~= #fence or v[4] >= fence
    or v[3] and (#v[3] > #ticket or #v[3] == #ticket and v[3] >= ticket) then
    return nil
  end
  redis.call("ZADD", keys[2], string.format("%d", ms + length), "h:" .. claim)
  redis.call("HSET", keys[1], "counts", string.format(counts_calm_form, cap, after), "fence", fence,
    "c:" .. claim, string.format(record_held_form, #node, node, ticket, fence, ticket) .. tail)
  redis.call("PEXPIREAT", keys[2], v[5])
  return { "granted", ms, us, length, 1, setting }
end
