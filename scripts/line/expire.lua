--- @include "state/score"
--- @include "state/int"
--- @include "state/record"
--- @include "line/earliest"
-- expired returns the members of a range of the line whose time has passed, and the
-- fields of their claims, within the budget.
local function expired(at, budget, from)
  local members, fields = {}, {}
  if budget.left > 0 then
    members = redis.call("ZRANGEBYSCORE", at.line, int(from), int(from + at.ms), "LIMIT", "0", int(budget.left))
  end
  for i, member in ipairs(members) do
    fields[i] = "c:" .. string.sub(member, 3)
  end
  return members, fields
end

-- expire_drop takes members of the line, and fields of the state, away.
local function expire_drop(at, budget, members, fields)
  redis.call("ZREM", at.line, unpack(members))
  redis.call("HDEL", at.state, unpack(fields))
  budget.left = budget.left - #fields
end

-- expire_holds drops holds whose deadline has passed. It returns the earliest deadline
-- that the kind has set with what they held (ms), nil for none.
local function expire_holds(at, st, budget)
  local holds, fields = expired(at, budget, score_hold)
  if #holds == 0 then
    return nil
  end
  local records = redis.call("HMGET", at.state, unpack(fields))
  for i, text in ipairs(records) do
    local weight, forever, terms = record_sums(text)
    st.used, st.forever, records[i] = st.used - weight, st.forever - forever, terms or false
  end
  local deadlines, sooner = kind_expire and redis.call("ZMSCORE", at.line, unpack(holds)), nil
  expire_drop(at, budget, holds, fields)
  for i, member in ipairs(kind_expire and holds or {}) do
    local ends = kind_expire(at, st, string.sub(member, 3), records[i], tonumber(deadlines[i]) - score_hold)
    sooner = ends and math.min(sooner or ends, ends) or sooner
  end
  return sooner
end

-- expire_claims drops holds and tombstones that have expired, and returns what expire does.
local function expire_claims(at, st, budget)
  local sooner = nil
  if st.used > 0 and st.form == "fat" then
    if earliest(at, st) > 0 and st.due <= at.ms then
      sooner, st.due = expire_holds(at, st, budget), nil
    end
    if earliest(at, st) == 0 and not redis.call("ZRANGEBYSCORE", at.line, int(score_hold), int(score_hold + score_forever),
      "LIMIT", "0", "1")[1] then
      st.used, st.forever = 0, 0 -- a cached sum counts as nothing when nothing is held
    end
  end
  local tombs, fields = {}, nil
  if st.gone > 0 then
    tombs, fields = expired(at, budget, score_tomb)
  end
  if tombs[1] then
    st.gone = st.gone - #tombs
    expire_drop(at, budget, tombs, fields)
  end
  return sooner
end

-- expire drops what has expired, within the budget: holds, then tombstones, then what else of
-- the kind ends by time. Claims that wait and have died are dropped by head and patrol. It
-- returns the earliest deadline that the kind has set (ms), nil for none. The budget also counts
-- what was swept. Its first write is a ZREM, so it works on a full server.
local function expire(at, st, budget)
  local sooner, before = nil, budget.left
  if st.gone > 0 or st.used > 0 and st.form == "fat" and earliest(at, st) <= at.ms then
    sooner = expire_claims(at, st, budget)
  end
  if kind_due then
    kind_due(at, st, budget)
  end
  budget.swept = budget.swept + before - budget.left
  return sooner
end
