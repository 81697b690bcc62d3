--- @include "state/band"
--- @include "state/int"
--- @include "state/counts"
-- save writes the state, with what else is to be written in it (field, value, ...), and
-- keeps one expiry on all keys of the name. furthest is the furthest deadline that this
-- run has set (ms), nil for none. What seldom changes is written only when it has. lasts
-- says that the line was there before this run and has not been empty since.
local function save(at, st, furthest, fields, lasts)
  local own, uses = kind_save and kind_save(st), 1 -- the number of the newest feature that the name uses
  -- The furthest deadline inside plus the linger, rounded up to a whole second so that the
  -- expiry seldom has to move; 0 = never, while a hold without end exists or the name is kept.
  local exp = 0
  if st.forever <= 0 and st.keep <= 0 then
    exp = math.ceil(((furthest or at.ms) + at.linger) / 1000) * 1000
    -- A long lease that has ended must not keep the state.
    local idle = st.used <= 0 and st.waiting <= 0 and st.exp > at.ms + 2 * at.linger
    if st.exp ~= 0 and not idle then
      exp = math.max(st.exp, exp)
    elseif st.fmt > 0 then
      -- What kept the expiry away has gone: look at what is inside.
      for _, from in ipairs({ 0, band_alive, band_tomb }) do
        local last = redis.call("ZREVRANGEBYSCORE", at.line, from + band_width - 2, from,
          "WITHSCORES", "LIMIT", 0, 1)[2]
        exp = last and math.max(exp, math.ceil((tonumber(last) - from + at.linger) / 1000) * 1000) or exp
      end
    end
  end
  local moved = exp ~= st.exp or uses ~= st.fmt
  local counts = string.format(counts_form, st.cap, st.used, st.waiting, st.gone, st.forever, st.keep)
  local all = { "counts", counts, "fence", int(st.fence), unpack(fields or {}) }
  local n = #all
  if own then
    all[n + 1], all[n + 2], n = "pool", own, n + 2
  end
  if st.ticket ~= st.was_ticket then
    all[n + 1], all[n + 2], n = "ticket", int(st.ticket), n + 2
  end
  if moved then
    st.exp = exp
    all[n + 1], all[n + 2], all[n + 3], all[n + 4] = "fmt", int(uses), "exp", int(exp)
  end
  redis.call("HSET", at.state, unpack(all))
  if exp == 0 then
    if moved then
      redis.call("PERSIST", at.line)
      redis.call("PERSIST", at.state)
      for _, key in ipairs(at.others or {}) do
        redis.call("PERSIST", key)
      end
    end
    return
  end
  if moved then
    redis.call("PEXPIREAT", at.state, int(exp))
    for _, key in ipairs(at.others or {}) do
      redis.call("PEXPIREAT", key, int(exp))
    end
  end
  if moved or furthest and not lasts then
    redis.call("PEXPIREAT", at.line, int(exp)) -- an emptied line is a new key
  end
end
