--- @include "state/band"
--- @include "state/int"
-- first returns the first claim in line and its place, or nil. Asked for "2", it also
-- returns the second claim, if there is one.
local function first(line, many)
  local head = redis.call("ZRANGEBYSCORE", line, int(band_queue), int(band_queue_end), "WITHSCORES",
    "LIMIT", "0", many or "1")
  if not head[1] then
    return nil
  end
  return string.sub(head[1], 3), tonumber(head[2]) - band_queue, head[3] and string.sub(head[3], 3)
end
