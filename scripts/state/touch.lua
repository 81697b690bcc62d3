--- @include "state/int"
-- touch sets the expiry of a fat name's line to what it is, or will be: a first write that needs no memory.
-- Redis refuses a script on a full server only at its first write that does.
local function touch(at, st)
  if st.was_never then
    redis.call("PERSIST", at.line)
  else
    redis.call("PEXPIREAT", at.line, int(st.exp > at.ms and st.exp or at.ms + at.linger))
  end
end
