--- @include "lib/bands"
--- @include "lib/record"
--- @include "lib/stem"
-- group reads the live entries of the owner that holds a lock, the outermost
-- first, each with its record r and its deadline held, and what they have in
-- common. It returns nil where nobody holds the lock. Without a stem there is
-- one entry.
local function group(at, st, text)
  local s = text and stem(text, st.fence)
  if not s then
    local sole = redis.call("ZRANGEBYSCORE", at.line, "(" .. at.ms, bands().forever, "LIMIT", 0, 1)[1]
    if not sole then
      return nil
    end
    s = {
      count = 0, worked_at = 0, extended = 0, last = 0, extended_at = 0, more = 0, call = "-",
      entries = { { claim = string.sub(sole, 3), kind = "o", ext = 0, at = 0, pending = 0, call = "-" } },
    }
  end
  local members, fields, live, unheard = {}, {}, {}, {}
  for i, e in ipairs(s.entries) do
    members[i], fields[i] = "h:" .. e.claim, "c:" .. e.claim
  end
  local scores = redis.call("ZMSCORE", at.line, unpack(members))
  local texts = redis.call("HMGET", at.state, unpack(fields))
  for i, e in ipairs(s.entries) do
    e.held = tonumber(scores[i])
    e.r = texts[i] and record(texts[i])
    if e.r and e.held and e.held > at.ms then
      local list = e.fresh and unheard or live
      list[#list + 1] = e
    end
  end
  for _, e in ipairs(unheard) do
    live[#live + 1] = e -- the others renew before one that has never spoken
  end
  s.entries = live
  if not live[1] then
    return nil
  end
  s.own, s.deadline = s.own or live[1].held, s.deadline or live[1].held
  return s
end
