--- @include "lib/expiry"
-- save writes the state, with the pairs given beside it (field, value, ...), and
-- keeps one expiry on all keys of the name. furthest is the furthest deadline
-- that this run has set, nil for none. What seldom changes is written only when
-- it has.
local function save(at, st, furthest, ...)
  local exp = expiry(at, st, furthest)
  local moved = exp ~= st.exp or st.fmt == 0
  st.exp = exp
  redis.call("HSET", at.state, "used", st.used, "waiting", st.waiting, "ticket", st.ticket, "fence", st.fence, ...)
  if moved or st.cap ~= at.cap or st.gone ~= at.gone or st.forever ~= at.forever or st.keep ~= at.keep then
    redis.call("HSET", at.state, "fmt", 1, "cap", st.cap, "exp", exp, "gone", st.gone, "forever", st.forever,
      "keep", st.keep)
  end
  if exp == 0 then
    if moved then
      redis.call("PERSIST", at.line)
      redis.call("PERSIST", at.state)
    end
    return
  end
  if moved then
    redis.call("PEXPIREAT", at.state, exp)
  end
  if moved or furthest then
    redis.call("PEXPIREAT", at.line, exp) -- an emptied line is a new key
  end
end
