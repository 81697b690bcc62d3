--- @include "lib/bands"
--- @include "lib/int"
-- bind binds a name to a resource for so many milliseconds, 0 = forever, but not to an
-- earlier end than least (ms), and forgets
-- two bindings that have ended, so that they do not grow in number where nothing else
-- sweeps.
local function bind(at, name, key, lasts, least)
  local band = bands()
  local ends = lasts == 0 and band.forever or math.min(math.max(at.ms + lasts, least), band.forever)
  redis.call("HSET", at.bindings, "b" .. name, int(ends) .. " " .. key)
  if ends < band.forever then
    redis.call("ZADD", at.line, band.bind + ends, "u:" .. name)
  else
    redis.call("ZREM", at.line, "u:" .. name)
  end
  local ended = redis.call("ZRANGEBYSCORE", at.line, band.bind, band.bind + at.ms, "LIMIT", 0, 2)
  for _, member in ipairs(ended) do
    redis.call("ZREM", at.line, member)
    redis.call("HDEL", at.bindings, "b" .. string.sub(member, 3))
  end
end
