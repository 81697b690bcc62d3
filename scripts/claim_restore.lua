--[[
claim_restore: a node's waiting claims that the server no longer knows stand where they stood.
KEYS[1] state (HASH field -> number, c:claim -> record)
KEYS[2] line (ZSET h:, a:, q:, t:claim -> score, see lib/bands)
ARGV[1] node    ARGV[2] capacity, if none is stored    ARGV[3] linger (ms)
ARGV[4] channel prefix    ARGV[5] name
ARGV[6...] x3: claim id, place, record with its ticket
RETURNS {"restored", next_ms, first, capacity, more, ...} | {"incompatible", format}
REPLAY a claim that is known stays as it is    COST O(log n) a claim + at most 100 drops and grants
]]
-- For each claim one word follows: waiting, held, gone, released, taken,
-- too_heavy.
--- @include "lib/open"
--- @include "lib/bands"
--- @include "lib/record"
--- @include "lib/leave"
--- @include "lib/fresh"
--- @include "lib/sweep"
--- @include "lib/handoff"
--- @include "lib/tide"
--- @include "lib/save"
--- @include "lib/tell"
local node, capacity = ARGV[1], tonumber(ARGV[2])
local at, st, _, newer = open(KEYS[1], KEYS[2], ARGV[3], ARGV[4], ARGV[5])
local band, out, budget = bands(), {}, 100
local reply = { "restored", -1, 0, 0, 0 }

if newer then
  return { "incompatible", newer }
end
fresh(at, st)
if st.cap == 0 then
  st.cap = capacity
end

local furthest = nil
-- restore puts one claim back, and says what it is now.
local function restore(claim, standing, text)
  local r = record(text)
  local known = redis.call("HGET", at.state, "c:" .. claim)
  if known then
    local was = record(known)
    if not was then
      return string.sub(known, 2)
    elseif was.node ~= node then
      return "taken"
    end
    local scores = redis.call("ZMSCORE", at.line, "h:" .. claim, "a:" .. claim)
    local held, alive = tonumber(scores[1]), tonumber(scores[2])
    if held and held > at.ms then
      return "held"
    elseif alive and alive - band.alive > at.ms then
      return "waiting"
    end
    leave(at, st, claim, was, held ~= nil)
  end
  if r.weight > st.cap then
    return "too_heavy"
  end
  redis.call("ZADD", at.line, band.alive + at.ms + r.wait, "a:" .. claim,
    band.queue + standing, "q:" .. claim)
  redis.call("HSET", at.state, "c:" .. claim, text)
  st.waiting = st.waiting + 1
  st.ticket = math.max(st.ticket, tonumber(r.ticket))
  furthest = math.max(furthest or 0, at.ms + r.wait)
  return "waiting"
end

for i = 6, #ARGV, 3 do
  reply[#reply + 1] = restore(ARGV[i], tonumber(ARGV[i + 1]), ARGV[i + 2])
end
local spent = sweep(at, st, budget)
spent = spent + handoff(at, st, budget - spent, out)
save(at, st, furthest)
reply[2], reply[3] = tide(at, st, node)
reply[4], reply[5] = st.cap, spent >= budget and 1 or 0
tell(out)
return reply
