--- @include "state/score"
--- @include "state/int"
-- A binding is the field b<name> of a pool's bindings:
--   ends      when it ends (ms), score_forever = never
--   resource  any bytes, up to the end
-- Beside them the bindings have a field v, so that the hash is never empty.

-- binding_parse returns the end (ms) and the resource, or nil.
local function binding_parse(text)
  local ends, key = string.match(text or "", "^(%d+) (.*)$")
  return tonumber(ends), key
end

-- binding_of returns the resource that a name is bound to and the binding's end (ms), nil
-- for none.
local function binding_of(at, name)
  local ends, key = binding_parse(redis.call("HGET", at.bindings, "b" .. name))
  if ends and ends > at.ms then
    return key, ends
  end
  return nil
end

-- binding_end ends a binding, and returns whether there was one: 1, else 0.
local function binding_end(at, name)
  redis.call("ZREM", at.line, "u:" .. name)
  return redis.call("HDEL", at.bindings, "b" .. name)
end

-- binding_begin binds a name to a resource for so many milliseconds, 0 = forever, but not to an
-- earlier end than least (ms), and forgets two bindings that have ended, so that they do
-- not grow in number where nothing else sweeps.
local function binding_begin(at, name, key, lasts, least_end)
  local ends = lasts == 0 and score_forever or math.min(math.max(at.ms + lasts, least_end), score_forever)
  redis.call("HSET", at.bindings, "b" .. name, int(ends) .. " " .. key)
  if ends < score_forever then
    redis.call("ZADD", at.line, int(score_bind + ends), "u:" .. name)
  else
    redis.call("ZREM", at.line, "u:" .. name)
  end
  local ended = redis.call("ZRANGEBYSCORE", at.line, int(score_bind), int(score_bind + at.ms), "LIMIT", "0", "2")
  for _, member in ipairs(ended) do
    binding_end(at, string.sub(member, 3))
  end
end
