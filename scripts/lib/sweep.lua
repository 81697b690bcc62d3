--- @include "lib/bands"
--- @include "lib/int"
--- @include "lib/record"
--- @include "lib/counted"
--- @include "lib/lowest"
-- sweep drops what has expired, at most budget entries: holds, then waiters,
-- then tombstones. It returns how many it dropped and, where it has looked and none of
-- them was a hold, what lowest says. Its first write is a ZREM, so it works on a full
-- server. Where a hold is of something, ended(claim, record, deadline) is called for
-- each that was dropped.
local function sweep(at, st, budget, ended)
  local band, total = bands(), 0
  local function expired(from)
    if total >= budget then
      return {}
    end
    return redis.call("ZRANGEBYSCORE", at.line, int(from), int(from + at.ms), "LIMIT", "0", int(budget - total))
  end
  local function drop(members, fields)
    redis.call("ZREM", at.line, unpack(members))
    redis.call("HDEL", at.state, unpack(fields))
    total = total + #fields
  end

  local holds, next_at, held = {}, nil, nil
  if st.used > 0 then
    next_at, held = lowest(at)
    if not held then
      st.used, st.forever = 0, 0 -- a cached sum counts as nothing when nothing is held
    end
  end
  if next_at and next_at <= at.ms then
    holds, next_at, held = expired(0), nil, nil
  end
  if #holds > 0 then
    local fields, records = {}, {}
    for i, member in ipairs(holds) do
      fields[i] = "c:" .. string.sub(member, 3)
    end
    for i, text in ipairs(redis.call("HMGET", at.state, unpack(fields))) do
      local r = text and record(text)
      st.used = st.used - (r and r.weight or 0)
      st.forever = st.forever - (r and counted(r) or 0)
      records[i] = r or false
    end
    local deadlines = ended and redis.call("ZMSCORE", at.line, unpack(holds))
    drop(holds, fields)
    for i, member in ipairs(ended and holds or {}) do
      ended(string.sub(member, 3), records[i], tonumber(deadlines[i]))
    end
  end

  local dead = st.waiting > 0 and expired(band.alive) or {}
  if #dead > 0 then
    local fields, members = {}, {}
    for i, member in ipairs(dead) do
      local claim = string.sub(member, 3)
      fields[i] = "c:" .. claim
      members[2 * i - 1], members[2 * i] = member, "q:" .. claim
    end
    st.waiting, at.parted = st.waiting - #dead, true
    drop(members, fields)
  end

  local stones = st.gone > 0 and expired(band.tomb) or {}
  if #stones > 0 then
    local fields = {}
    for i, member in ipairs(stones) do
      fields[i] = "c:" .. string.sub(member, 3)
    end
    st.gone = st.gone - #stones
    drop(stones, fields)
  end
  return total, next_at, held
end
