-- plaingrant grants at once in the plain case: the name is known and calm (nobody
-- waits, nothing keeps its expiry away or has to move it), the claim is new and fits,
-- renews no later than it would wait, and has no maximum hold. That is what the
-- script does that includes it, in the fewest steps, on the texts as they are read:
-- numbers cost more than commands. A test holds the two to the same. It returns the
-- ticket, the fence and the time left (ms), or nil, and has written nothing, in every
-- other case. All arguments are text.
local function plaingrant(t, v, state, line, claim, node, tail, weight, capacity, wait, lease, max, linger)
  local cap, used = string.match(v[2] or "", "^(%d+) (%d+) 0 0 0 0$")
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
  redis.call("ZADD", line, string.format("%d", ms + length), "h:" .. claim)
  redis.call("HSET", state, "counts", cap .. " " .. after .. " 0 0 0 0", "fence", fence,
    "c:" .. claim, #node .. ":" .. node .. "h " .. ticket .. " " .. fence .. " " .. ticket .. " 0 " .. tail)
  redis.call("PEXPIREAT", line, v[5])
  return ms, us, length
end
