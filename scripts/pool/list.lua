-- The list of free resources is the hash free, a circle with the empty string as its
-- sentinel: n<key> is the next, p<key> the previous.

-- list_push puts a resource at the tail.
local function list_push(at, key)
  local tail = redis.call("HGET", at.free, "p") or ""
  redis.call("HSET", at.free, "n" .. tail, key, "p" .. key, tail, "n" .. key, "", "p", key)
end

-- list_drop takes a resource out, wherever in the list it is. It returns whether it was
-- there.
local function list_drop(at, key)
  local links = redis.call("HMGET", at.free, "n" .. key, "p" .. key)
  local listed = links[1] and links[2]
  if listed then
    redis.call("HSET", at.free, "p" .. links[1], links[2], "n" .. links[2], links[1])
    redis.call("HDEL", at.free, "n" .. key, "p" .. key)
  end
  return listed and true or false
end

-- list_beside is the resource behind one, or else the one before it.
local function list_beside(at, key)
  local to = redis.call("HGET", at.free, "n" .. key)
  return (not to or to == "") and redis.call("HGET", at.free, "p" .. key) or to
end
