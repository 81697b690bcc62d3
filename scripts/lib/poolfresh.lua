--- @include "lib/fresh"
-- poolfresh is fresh for a pool: what a state that is not there any more has left
-- behind goes, and the hashes get what keeps them from ever being empty: a script
-- may name them while a slot moves.
local function poolfresh(at, st)
  if st.fmt > 0 then
    return
  end
  fresh(at, st)
  for _, key in ipairs(at.more) do
    if redis.call("HLEN", key) > 0 then
      redis.call("UNLINK", key)
    end
  end
  redis.call("HSET", at.items, "v", "1")
  redis.call("HSET", at.free, "n", "", "p", "")
  redis.call("HSET", at.bindings, "v", "1")
end
