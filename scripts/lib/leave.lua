--- @include "lib/bands"
--- @include "lib/counted"
--- @include "lib/first"
--- @include "lib/recount"
-- leave takes a claim out of the line and the state, as a hold or as a waiter,
-- and lowers the counts by what was there. With a word given, a tombstone that says
-- it stays for so many milliseconds. at.parted says that the first in line has left:
-- the next one may not know yet what it waits for. A claim of which the line has nothing
-- says that somebody has deleted the line: the counts are made anew. Its first write is a
-- ZREM, so it works on a full server.
local function leave(at, st, claim, r, held, word, stays)
  if held then
    redis.call("ZREM", at.line, "h:" .. claim)
    st.used = st.used - r.weight
    st.forever = st.forever - counted(r)
  else
    at.parted = at.parted or first(at.line) == claim
    if redis.call("ZREM", at.line, "a:" .. claim, "q:" .. claim) > 0 then
      st.waiting = st.waiting - 1
    else
      recount(at, st)
    end
  end
  if word then
    redis.call("HSET", at.state, "c:" .. claim, "!" .. word)
    redis.call("ZADD", at.line, bands().tomb + at.ms + stays, "t:" .. claim)
    st.gone = st.gone + 1
  else
    redis.call("HDEL", at.state, "c:" .. claim)
  end
end
