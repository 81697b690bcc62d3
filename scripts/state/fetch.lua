-- fetch reads what every step needs: the server's time; of the state the values, a claim's record, and the fields named
-- behind it, false where there is none; and the first two members of the line.
-- Of a thin name there is only its text, in the field thin. What the state is decides which form
-- the name has: a line may be left over from a state that was evicted.
local function fetch(keys, claim, ...)
  local time, members = redis.call("TIME"), redis.call("ZRANGE", keys[2], "0", "1")
  local thin = not members[1] and redis.call("MGET", keys[1])[1]
  if not thin then
    local fields = redis.pcall("HMGET", keys[1], "v", claim and "c:" .. claim or "c:", ...)
    if not fields.err then
      return time, fields, members[1], members[2]
    end
    thin = redis.call("MGET", keys[1])[1]
    if not thin then
      redis.call("HLEN", keys[1]) -- the server says that it is of another type
    end
  end
  return time, { false, false, false, thin = thin }, members[1]
end
