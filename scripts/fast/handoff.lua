--- @include "state/score"
--- @include "state/values"
--- @include "state/record"
--- @include "line/place"
--- @include "wake/wake"
-- fast_handoff takes a hold back that fast_release has looked at (p), and grants to the first in
-- line, if that one lives, the name is full with it, and the next one need not be told.
local function fast_handoff(p, v, keys, channel, name, claim)
  local state, line, text = keys[1], keys[2], v[1]
  local members = redis.call("ZRANGE", line, "0", "1")
  local first = select(2, string.match(members[1] or "", place_member))
  local next = select(2, string.match(members[2] or "", place_member))
  if not first then
    return nil
  end
  local records = redis.call("HMGET", state, "c:" .. first, "c:" .. (next or ""))
  local node, ticket, heard, limit, terms, weight, secret, wait = string.match(records[1] or "", record_waiter)
  if not node or p.us <= string.sub(text, values_former, values_head - 1) or p.left + weight ~= p.cap + 0 then
    return nil
  end
  local alive = heard + wait
  local due = alive
  if p.left > 0 then
    local holds = redis.call("ZRANGEBYSCORE", line, string.format("%d", score_hold),
      string.format("%d", score_hold + score_forever), "WITHSCORES", "LIMIT", "0", "2")
    due = math.min((holds[1] == "h:" .. claim and holds[4] or holds[2]) - score_hold, alive)
  end
  if alive - p.now <= 0 then
    return nil
  elseif p.waiting ~= "1" then
    local _, since, lives = string.match(records[2] or "", record_lives)
    if not since or due < since + lives / 2 then
      return nil
    end
  end
  redis.call("ZREM", line, "h:" .. claim, members[1])
  redis.call("HDEL", state, "c:" .. claim)
  redis.call("ZADD", line, string.format("%d", score_hold + alive), "h:" .. first)
  local fence, left = string.format("%d", p.us + 0), string.format("%d", alive - p.now)
  redis.call("HSET", state,
    "v", values_known .. p.us .. string.sub(text, values_head, values_due - 1) .. string.format(values_ms, due)
    .. string.sub(text, values_ticket - 1, values_busy - 1) .. p.now .. values_gap .. p.cap .. values_gap .. p.cap
    .. values_gap .. string.format("%d", p.waiting - 1) .. values_gap .. p.kept .. p.rest,
    "c:" .. first, record_given .. node .. record_gap .. ticket .. record_gap .. fence .. record_gap .. p.now
    .. record_gap .. limit .. record_gap .. terms)
  redis.pcall("PUBLISH", channel .. node, string.format(wake_granted, #name) .. name
    .. string.format(wake_size, #first) .. first .. string.format(wake_size, #fence) .. fence
    .. string.format(wake_size, #left) .. left .. wake_nothing .. string.format(wake_size, #secret) .. secret)
  return p.reply
end
