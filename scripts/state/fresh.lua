-- fresh makes sure that a name that is about to be written for the first time
-- has no line left over from a state that was evicted: what is in it is of no use
-- to anybody. It reads before it writes: on a full server a write that changes
-- nothing would open the door for those that need memory.
local function fresh(at, st)
  if st.fmt == 0 and redis.call("ZCARD", at.line) > 0 then
    redis.call("UNLINK", at.line)
  end
end
