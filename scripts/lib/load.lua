-- load reads the state of a name and, with a claim given, that claim's record
-- (false where there is none). A name that was never used reads as all zero.
-- What was read stays in at.was, so that save writes only what has changed.
local function load(at, claim)
  local fields = { "fmt", "cap", "used", "waiting", "gone", "forever", "keep", "ticket", "fence", "exp" }
  local count = #fields
  fields[count + 1] = claim and "c:" .. claim
  local values = redis.call("HMGET", at.state, unpack(fields))
  local st = {}
  at.was = {}
  for i = 1, count do
    local value = tonumber(values[i]) or 0
    st[fields[i]], at.was[fields[i]] = value, value
  end
  return st, values[count + 1]
end
