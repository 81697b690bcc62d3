--- @include "lib/int"
--- @include "lib/expiry"
-- save writes what has changed in the state, with the pairs given beside it
-- (field, value, ...), and keeps one expiry on all keys of the name. furthest is
-- the furthest deadline that this run has set, nil for none.
local function save(at, st, furthest, ...)
  local exp = expiry(at, st, furthest)
  local moved = exp ~= st.exp or st.fmt == 0
  st.exp, st.fmt = exp, 1
  local pairs_to_write = { ... }
  for field, was in pairs(at.was) do
    if st[field] ~= was then
      pairs_to_write[#pairs_to_write + 1] = field
      pairs_to_write[#pairs_to_write + 1] = int(st[field])
    end
  end
  if #pairs_to_write > 0 then
    redis.call("HSET", at.state, unpack(pairs_to_write))
  end
  if exp == 0 then
    if moved then
      redis.call("PERSIST", at.line)
      redis.call("PERSIST", at.state)
    end
    return
  end
  if moved then
    redis.call("PEXPIREAT", at.state, int(exp))
  end
  if moved or furthest then
    redis.call("PEXPIREAT", at.line, int(exp)) -- an emptied line is a new key
  end
end
