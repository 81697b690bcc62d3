--- @include "line/place"
-- fetch reads what every step needs: the server's time; the first member of the line; and of the
-- state the values, a claim's record, that of the first claim in line, and the fields named
-- behind it, false where there is none. Of a thin name there is only its text, in the field thin.
-- What the state is decides which form the name has: a line may be left over from a state that
-- was evicted.
local function fetch(keys, claim, ...)
  local time, top = redis.call("TIME"), redis.call("ZRANGE", keys[2], "0", "0")[1]
  local thin = not top and redis.call("MGET", keys[1])[1]
  if not thin then
    local _, first = string.match(top or "", place_member)
    local fields = redis.pcall("HMGET", keys[1], "v", "c:" .. (claim or ""), "c:" .. (first or ""), ...)
    thin = fields.err and redis.call("MGET", keys[1])[1]
    if fields.err and not thin then
      redis.call("HLEN", keys[1]) -- the server says that it is of another type
    elseif not thin then
      return time, fields, top
    end
  end
  return time, { false, false, false, false, thin = thin }, top
end
