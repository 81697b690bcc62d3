--- @include "line/place"
-- first returns the first claim in line, its place and its lane, or nil.
local function first(line)
  local head = redis.call("ZRANGE", line, "0", "0", "WITHSCORES")
  local place, claim = string.match(head[1] or "", place_member)
  if claim then
    return claim, place, tonumber(head[2])
  end
  return nil
end
