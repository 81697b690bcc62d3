--- @include "lib/int"
--- @include "lib/expiry"
-- save writes the state, with the pairs given beside it (field, value, ...), and
-- keeps one expiry on all keys of the name, those in at.more included. furthest is
-- the furthest deadline that this run has set, nil for none. What seldom changes is
-- written only when it has. at.lasting says that the line was there before this run and
-- has not been empty since.
local function save(at, st, furthest, ...)
  local exp = expiry(at, st, furthest)
  local counts = string.format("%d %d %d %d %d %d", st.cap, st.used, st.waiting, st.gone, st.forever, st.keep)
  local moved, fields = exp ~= st.exp or st.fmt == 0, { "counts", counts, "fence", int(st.fence), ... }
  local function also(field, value)
    fields[#fields + 1], fields[#fields + 2] = field, value
  end
  if st.ticket ~= at.ticket then
    also("ticket", int(st.ticket))
  end
  if moved then
    st.exp = exp
    also("fmt", "1")
    also("exp", int(exp))
  end
  redis.call("HSET", at.state, unpack(fields))
  if exp == 0 then
    if moved then
      redis.call("PERSIST", at.line)
      redis.call("PERSIST", at.state)
      for _, key in ipairs(at.more or {}) do
        redis.call("PERSIST", key)
      end
    end
    return
  end
  if moved then
    redis.call("PEXPIREAT", at.state, int(exp))
    for _, key in ipairs(at.more or {}) do
      redis.call("PEXPIREAT", key, int(exp))
    end
  end
  if moved or furthest and not at.lasting then
    redis.call("PEXPIREAT", at.line, int(exp)) -- an emptied line is a new key
  end
end
