-- touch sets the line's expiry to what it is: a first write that needs no memory.
-- Redis refuses a script on a full server only at its first write that does.
local function touch(at, st)
  if st.exp > 0 then
    redis.call("PEXPIREAT", at.line, st.exp)
  else
    redis.call("PERSIST", at.line)
  end
end
