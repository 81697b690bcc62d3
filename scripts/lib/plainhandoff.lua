--- @include "lib/int"
--- @include "lib/first"
--- @include "lib/record"
--- @include "lib/wake"
--- @include "lib/hasten"
--- @include "lib/tell"
-- plainhandoff takes a hold back that plainrelease has looked at, and grants to the
-- first in line, if that one lives and the name is full with it. That is what the
-- script does that includes it, in the fewest steps; see plaingrant. It returns the
-- status and the fence of the hold, or nil, and has written nothing, in every other case.
local function plainhandoff(p, state, line, claim, channel, name)
  local fence, heir, _, second = int(p.us), first(line, "2")
  if not heir then
    return nil
  end
  local texts = redis.call("HMGET", state, "c:" .. heir, "c:" .. (second or ""))
  local scores = redis.call("ZMSCORE", line, "a:" .. heir, "a:" .. (second or ""))
  local text, alive = texts[1], scores[1]
  local size, from = string.match(text or "", "^(%d+):()")
  if not alive or not size or not p.fence or #p.fence ~= #fence or p.fence >= fence then
    return nil
  end
  local ticket, limit, tail, takes, secret = string.match(
    text, "^w (%d+) %d+ %d+ (%d+) ((%d+) (%S+) .*)$", from + size)
  local lives = alive - bands().alive
  if not ticket or lives <= p.ms or p.left + takes ~= p.cap + 0 then
    return nil
  end
  local head = string.sub(text, 1, from + size - 1)
  redis.call("ZREM", line, "h:" .. claim)
  redis.call("HDEL", state, "c:" .. claim)
  redis.call("ZADD", line, int(lives), "h:" .. heir)
  redis.call("ZREM", line, "a:" .. heir, "q:" .. heir)
  redis.call("HSET", state, "counts", p.cap .. " " .. p.cap .. " " .. p.waiting .. " 0 0 0", "fence", fence,
    "c:" .. heir, head .. "g " .. ticket .. " " .. fence .. " " .. int(p.ms) .. " " .. limit .. " " .. tail)
  local out = {}
  wake(out, channel .. string.sub(head, from), "granted", name, heir, p.us, lives - p.ms, "", secret)
  local r = texts[2] and record(texts[2])
  if r then
    hasten({ state = state, line = line, ms = p.ms, channel = channel, name = name }, p, true, out,
      second, r, (tonumber(scores[2]) or 0) - bands().alive, p.left == 0 and lives or nil)
  end
  tell(out)
  return p.status, p.was
end
