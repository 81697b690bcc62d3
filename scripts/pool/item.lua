--- @include "state/score"
--- @include "state/least"
-- What is known of a resource is the field i<resource> of a pool's items: words
--   max      how many may hold it at once
--   expiry   when it leaves the pool (ms), 0 = never
--   ends     the end of its rest (ms), 0 = it does not rest, score_forever = without end
--   pend     a rest that begins when it next comes back (ms), 0 = none, score_forever = without
--            end
--   rev      the revision of the pool when it was last added, or named by an Add or a Replace
--   flags    1: it leaves when its last holder gives it back, 2: it has settings of its own, 3: both
--   count    how many claims hold it, and those claims
--   reason   why it rests, or will: any bytes, up to the end
-- Beside them the items have a field v, so that the hash is never empty, see pool_fresh.

-- What the plain cases read of one that neither rests nor will: what stands before its count, max,
-- expiry, rev, its count, its claims, each with a space behind it. And what they write.
local item_plain = "^(([1-9]%d*) (%d+) 0 0 (%d+) 0 )(%d+) (.*)$"
local item_claim = "%S+ "
local item_gap = " "
local item_awake = "^(%d+ %d+ )0(.*)$" -- of one that does not rest: what stands before ends, and behind it
-- Of one that a single claim may hold, and that neither expires nor rests nor will: what it begins with, where that
-- and rev end, which has 13 digits then, and what follows, if nobody holds it, and if the claim behind that does.
local item_alone = "1 0 0 0 "
local item_alone_end = 8
local item_rev_end = 21
local item_free = " 0 0 "
local item_held = " 0 1 "

-- item_new is a resource that is not in the pool yet. These are all the fields of an item;
-- listed says that it belongs among the free; was has what settle compares with.
local function item_new()
  return {
    expiry = 0, ends = 0, pend = 0, rev = 0, leaving = false, own = false, claims = {}, reason = "", listed = false,
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
  local max, expiry, ends, pend, rev, flags, count, from = string.match(
    text, "^(%d+) (%d+) (%d+) (%d+) (%d+) ([0-3]) (%d+) ()")
  if not from then
    return nil, true
  end
  local i, most = {
    max = max + 0, expiry = expiry + 0, ends = ends + 0, pend = pend + 0, rev = rev + 0,
    leaving = flags == "1" or flags == "3", own = flags + 0 > 1, claims = {}, reason = "", listed = false, was = false,
  }, score_forever
  if i.max == 0 or i.max > most or i.expiry > most or i.ends > most or i.pend > most or i.rev > most then
    return nil, true
  end
  for n = 1, count + 0 do
    i.claims[n], from = string.match(text, "^(%S+) ()", from)
    if not from then
      return nil, true
    end
  end
  i.reason = string.sub(text, from)
  i.listed = not i.leaving and i.ends == 0 and #i.claims < i.max
  i.was = { ends = i.ends, expiry = i.expiry, leased = #i.claims > 0, leaving = i.leaving }
  return i
end

-- item_stays says whether an item, nil for none, is that of a resource that neither leaves nor has expired.
local function item_stays(at, i)
  return i and not i.leaving and (i.expiry == 0 or i.expiry > at.ms)
end

-- item_moment is when the rest of a resource, or its stay in the pool, ends (ms), nil = never.
local function item_moment(i)
  local rest = i.ends > 0 and i.ends < score_forever and i.ends or nil
  return least(rest, i.expiry > 0 and i.expiry or nil)
end

-- item_there says whether a resource is in the pool, and neither leaving nor expired. One that is
-- damaged counts as there.
local function item_there(at, key)
  local i, bad = item_read(at, key)
  return bad or item_stays(at, i)
end

-- item_write is the counterpart of item_read.
local function item_write(i)
  return string.format("%d %d %d %d %d %d %d ", i.max, i.expiry, i.ends, i.pend, i.rev,
    (i.leaving and 1 or 0) + (i.own and 2 or 0), #i.claims)
    .. (i.claims[1] and table.concat(i.claims, item_gap) .. item_gap or "") .. i.reason
end
