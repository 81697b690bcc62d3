-- unlink takes a resource out of the list of free ones, wherever in it it is. It returns
-- whether it was there.
local function unlink(at, key)
  local links = redis.call("HMGET", at.free, "n" .. key, "p" .. key)
  local listed = links[1] and links[2]
  if listed then
    redis.call("HSET", at.free, "p" .. links[1], links[2], "n" .. links[2], links[1])
    redis.call("HDEL", at.free, "n" .. key, "p" .. key)
  end
  return listed and true or false
end
