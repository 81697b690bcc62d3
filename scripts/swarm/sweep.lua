-- sweep_nodes drops the nodes that were condemned longer ago than memory (ms), and the
-- tombstones whose time has passed, at most 100 together. It returns 1 if more
-- may be left, else 0.
local function sweep_nodes(at, memory)
  local members = redis.call("ZRANGEBYSCORE", at.probes, at.condemned, at.condemned + at.ms - memory, "LIMIT", 0, 100)
  if #members < 100 then
    local stale = redis.call("ZRANGEBYSCORE", at.probes, at.left, at.left + at.ms, "LIMIT", 0, 100 - #members)
    for _, old in ipairs(stale) do
      members[#members + 1] = old
    end
  end
  if not members[1] then
    return 0
  end
  local fields = {}
  for i, old in ipairs(members) do
    fields[i] = (string.sub(old, 1, 1) == "c" and "n" or "t") .. string.sub(old, 2)
  end
  redis.call("ZREM", at.probes, unpack(members))
  redis.call("HDEL", at.state, unpack(fields))
  return #members >= 100 and 1 or 0
end
