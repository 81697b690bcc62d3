--- @include "state/band"
--- @include "state/counts"
--- @include "state/int"
--- @include "state/record"
--- @include "line/first"
--- @include "line/lowest"
--- @include "line/nudge"
--- @include "wake/wake"
--- @include "wake/tell"
-- quick_handoff takes a hold back that quick_release has looked at, and grants to the
-- first in line, if that one lives and the name is full with it. That is what the general
-- way does, in the fewest steps; see quick/grant. It returns the reply, or nil, and has
-- written nothing, in every other case.
local function quick_handoff(p, keys, claim, channel, name)
  local state, line = keys[1], keys[2]
  local fence, heir, _, second = int(p.us), first(line, "2")
  if not heir then
    return nil
  end
  local texts = redis.call("HMGET", state, "c:" .. heir, "c:" .. (second or ""))
  local scores = redis.call("ZMSCORE", line, "a:" .. heir, "a:" .. (second or ""))
  local text, alive = texts[1], scores[1]
  local size, from = string.match(text or "", record_node)
  if not alive or not size or not p.fence or #p.fence ~= #fence or p.fence >= fence then
    return nil
  end
  local ticket, limit, tail, takes, secret = string.match(text, record_heir, from + size)
  local lives = alive - band_alive
  if not ticket or lives <= p.ms or p.left + takes ~= p.cap + 0 then
    return nil
  end
  local own = string.sub(text, 1, from + size - 1)
  redis.call("ZREM", line, "h:" .. claim)
  redis.call("HDEL", state, "c:" .. claim)
  redis.call("ZADD", line, int(lives), "h:" .. heir)
  redis.call("ZREM", line, "a:" .. heir, "q:" .. heir)
  redis.call("HSET", state, "counts", string.format(counts_line_form, p.cap, p.cap, p.waiting), "fence", fence,
    "c:" .. heir, own .. string.format(record_heir_form, ticket, fence, p.ms, limit) .. tail)
  local at = { channel = channel, name = name, ms = p.ms }
  wake(at, string.sub(own, from), "granted", name, heir, p.us, lives - p.ms, "", secret)
  local r = texts[2] and record_read(texts[2])
  local next_at = r and (p.left == 0 and lives or lowest(line))
  if next_at then
    nudge(at, r, (tonumber(scores[2]) or 0) - band_alive, next_at)
  end
  tell(at)
  return p.reply
end
