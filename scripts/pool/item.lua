--- @include "state/band"
--- @include "state/int"
-- What is known of a resource is the field i<resource> of a pool's items: words
--   max      how many may hold it at once
--   expiry   when it leaves the pool (ms), 0 = never
--   ends     the end of its rest (ms), 0 = it does not rest, band_forever = without end
--   pend     a rest that begins when it next comes back (ms), 0 = none, band_forever = without
--            end
--   gen      the last Replace that named it, or that had begun when it was added
--   leaving  1: it leaves when its last holder gives it back
--   count    how many claims hold it, and those claims
--   reason   why it rests, or will: any bytes, up to the end

-- item_new is a resource that is not in the pool yet. These are all the fields of an item;
-- listed says that it belongs in the list of free ones; was has what settle compares with.
local function item_new()
  return {
    expiry = 0, ends = 0, pend = 0, gen = 0, leaving = false, claims = {}, reason = "", listed = false,
    was = { ends = 0, expiry = 0, leased = false, leaving = false },
  }
end

-- item_read returns the item of a resource, nil where it is not in the pool, nil and true
-- where the text is not ours: it is damaged then, see pool/damaged. Whoever has the text
-- already gives it.
local function item_read(at, key, text)
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
  local most = band_forever
  for _, n in ipairs({ i.max or -1, i.expiry or -1, i.ends or -1, i.pend or -1, i.gen or -1 }) do
    if n < 0 or n > most then
      return nil, true
    end
  end
  if i.max == 0 then
    return nil, true
  end
  i.reason = string.sub(text, from)
  i.listed = not i.leaving and i.ends == 0 and #i.claims < i.max
  i.was = { ends = i.ends, expiry = i.expiry, leased = #i.claims > 0, leaving = i.leaving }
  return i
end

-- item_write is the counterpart of item_read.
local function item_write(i)
  local w = { i.max, int(i.expiry), int(i.ends), int(i.pend), i.gen, i.leaving and 1 or 0, #i.claims }
  for _, claim in ipairs(i.claims) do
    w[#w + 1] = claim
  end
  w[#w + 1] = i.reason
  return table.concat(w, " ")
end
