--- @include "state/band"
--- @include "state/values"
--- @include "state/record"
--- @include "line/place"
--- @include "wake/wake"
-- quick_heir takes a hold back that quick_release has looked at (p), and grants to the first in
-- line (top), if that one lives, the name is full with it, and the next one need not be told.
local function quick_heir(p, v, top, keys, channel, name, claim)
  local state, line, text = keys[1], keys[2], v[1]
  local node, ticket, heard, limit, tail, weight, secret, wait = string.match(v[3] or "", record_heir)
  local heir = select(2, string.match(top or "", place_member))
  if not node or not heir or p.us <= string.sub(text, values_former, values_head - 1)
    or p.left + weight ~= p.cap + 0 then
    return nil
  end
  local alive = heard + wait
  local due = alive
  if p.left > 0 then
    local holds = redis.call("ZRANGEBYSCORE", line, string.format("%d", band_hold),
      string.format("%d", band_hold + band_forever), "WITHSCORES", "LIMIT", "0", "2")
    due = math.min((holds[1] == "h:" .. claim and holds[4] or holds[2]) - band_hold, alive)
  end
  if alive - p.now <= 0 then
    return nil
  elseif p.waiting ~= "1" then
    local second = select(2, string.match(redis.call("ZRANGE", line, "1", "1")[1] or "", place_member))
    local _, since, lives = string.match(second and redis.call("HGET", state, "c:" .. second) or "", record_lives)
    if not since or due < since + lives / 2 then
      return nil
    end
  end
  redis.call("ZREM", line, "h:" .. claim, top)
  redis.call("HDEL", state, "c:" .. claim)
  redis.call("ZADD", line, string.format("%d", band_hold + alive), "h:" .. heir)
  local fence, left = string.format("%d", p.us + 0), string.format("%d", alive - p.now)
  redis.call("HSET", state,
    "v", values_known .. p.us .. string.sub(text, values_head, values_due - 1) .. string.format(values_ms, due)
    .. string.sub(text, values_ticket - 1, values_busy - 1) .. p.now .. values_gap .. p.cap .. values_gap .. p.cap
    .. values_gap .. string.format("%d", p.waiting - 1) .. values_gap .. p.kept .. p.rest,
    "c:" .. heir, record_given .. node .. record_gap .. ticket .. record_gap .. fence .. record_gap .. p.now
    .. record_gap .. limit .. record_gap .. tail)
  redis.pcall("PUBLISH", channel .. node, string.format(wake_granted, #name) .. name
    .. string.format(wake_size, #heir) .. heir .. string.format(wake_size, #fence) .. fence
    .. string.format(wake_size, #left) .. left .. wake_nothing .. string.format(wake_size, #secret) .. secret)
  return p.reply
end
