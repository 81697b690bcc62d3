-- unlink takes a resource out of the list of free ones, wherever in it it is.
local function unlink(at, key)
  local links = redis.call("HMGET", at.free, "n" .. key, "p" .. key)
  if links[1] and links[2] then
    redis.call("HSET", at.free, "p" .. links[1], links[2], "n" .. links[2], links[1])
    redis.call("HDEL", at.free, "n" .. key, "p" .. key)
  end
end
