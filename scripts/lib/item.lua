--- @include "lib/bands"
-- item reads what is known of a resource in a pool, nil where it is not in it, nil and
-- true where the text is not ours: it is damaged then, see lib/damaged. Whoever has the
-- text already gives it. It is words:
--   max      how many may hold it at once
--   expiry   when it leaves the pool (ms), 0 = never
--   ends     the end of its rest (ms), 0 = it does not rest; see bands().forever
--   pend     a rest that begins when it next comes back (ms), 0 = none
--   gen      the last Replace that named it
--   leaving  1: it leaves when its last holder gives it back
--   count    how many claims hold it, and those claims
-- and why it rests, any bytes. What settle has to compare stays in was.
local function item(at, key, text)
  text = text or redis.call("HGET", at.items, "i" .. key)
  if not text then
    return nil
  end
  local max, expiry, ends, pend, gen, leaving, count, from = string.match(
    text, "^(%d+) (%d+) (%d+) (%d+) (%d+) (%d) (%d+) ()")
  if not from then
    return nil, true
  end
  local i = {
    max = tonumber(max), expiry = tonumber(expiry), ends = tonumber(ends), pend = tonumber(pend),
    gen = tonumber(gen), leaving = leaving == "1", claims = {},
  }
  for n = 1, tonumber(count) or math.huge do
    i.claims[n], from = string.match(text, "^(%S+) ()", from)
    if not from then
      return nil, true
    end
  end
  local most = bands().forever
  local function within(n)
    return n and n <= most
  end
  if not (within(i.max) and i.max > 0 and within(i.expiry) and within(i.ends) and within(i.pend) and within(i.gen)) then
    return nil, true
  end
  i.reason = string.sub(text, from)
  i.listed = not i.leaving and i.ends == 0 and #i.claims < i.max
  i.was = { ends = i.ends, expiry = i.expiry, leased = #i.claims > 0, leaving = i.leaving }
  return i
end
