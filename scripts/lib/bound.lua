-- bound returns the resource that a name is bound to and the binding's end (ms), nil
-- for none.
local function bound(at, name)
  local text = redis.call("HGET", at.bindings, "b" .. name)
  local ends, key = string.match(text or "", "^(%d+) (.*)$")
  if ends and tonumber(ends) > at.ms then
    return key, tonumber(ends)
  end
  return nil
end
