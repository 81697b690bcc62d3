--- @include "lib/bands"
--- @include "lib/place"
-- stand is the place of a claim that came with a ticket. Queued: where the
-- ticket says. Random: drawn once between the first that waits in its priority and
-- its own ticket; the draw (0 up to 2^32) comes with the call, so that a replay is
-- equal. LIFO: the later the sooner, behind the others of its priority.
local function stand(line, access, priority, ticket, draw)
  if access == "lifo" then
    return place(priority, bands().width - 1 - ticket)
  end
  local own, from = place(priority, ticket), place(priority, 0)
  if access ~= "random" then
    return own
  end
  local band = bands().queue
  local lowest = redis.call("ZRANGEBYSCORE", line, band + from, band + own, "WITHSCORES", "LIMIT", 0, 1)[2]
  local least = lowest and tonumber(lowest) - band or own
  return least + math.floor(draw / 4294967296 * (own - least + 1))
end
