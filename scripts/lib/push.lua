-- push puts a resource at the tail of the list of free ones. The list is a circle
-- with the empty string as its sentinel: n<key> is the next, p<key> the previous.
local function push(at, key)
  local tail = redis.call("HGET", at.free, "p") or ""
  redis.call("HSET", at.free, "n" .. tail, key, "p" .. key, tail, "n" .. key, "", "p", key)
end
