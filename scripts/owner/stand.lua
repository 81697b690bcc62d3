--- @include "state/band"
-- stand is the place of a claim by its access. Queued: where the ticket says. Random: drawn
-- once between the first that waits in its priority and its own ticket; the draw (0 up to
-- 2^32) comes with the call, so that a replay is equal. LIFO: the later the sooner, behind
-- the others of its priority.
local function stand(at, ask, ticket)
  if ask.access == "lifo" then
    return band_place(ask.priority, band_width - 1 - ticket)
  end
  local own, from = band_place(ask.priority, ticket), band_place(ask.priority, 0)
  if ask.access ~= "random" then
    return own
  end
  local nearest = redis.call("ZRANGEBYSCORE", at.line, band_queue + from, band_queue + own, "WITHSCORES",
    "LIMIT", 0, 1)[2]
  local front = nearest and tonumber(nearest) - band_queue or own
  return front + math.floor(ask.draw / 4294967296 * (own - front + 1))
end
