--[[
semaphore_renew: the calls of a node's own claims: heartbeats, confirmations, renewals.
KEYS[1] state (HASH field -> number, c:claim -> record)
KEYS[2] line (ZSET h:, a:, q:, t:claim -> score, see lib/bands)
ARGV[1] node    ARGV[2] linger (ms)    ARGV[3] channel prefix    ARGV[4] name
ARGV[5...] x2: claim id, mode (beat, renew, detach, check)
RETURNS {"renewed", next_ms, first, capacity, more, ...} | {"incompatible", format}
REPLAY a lease is counted from now; a fixed one starts once    COST O(log n) a claim + at most 100 drops and grants
]]
-- For each claim three fields follow: a word, the milliseconds left, the fence.
--   held       it holds; left = -1 for a hold without end
--   waiting    it waits in line
--   unknown    nothing is known of it, or its deadline has passed
--   taken      another node has resumed it
--   too_heavy  it waited and weighs more than the capacity: removed
--   gone, released    what a tombstone says
--- @include "lib/open"
--- @include "lib/bands"
--- @include "lib/record"
--- @include "lib/pack"
--- @include "lib/lengthen"
--- @include "lib/leave"
--- @include "lib/touch"
--- @include "lib/sweep"
--- @include "lib/handoff"
--- @include "lib/hasten"
--- @include "lib/tide"
--- @include "lib/save"
--- @include "lib/tell"
local node = ARGV[1]
local at, st, _, newer = open(KEYS[1], KEYS[2], ARGV[2], ARGV[3], ARGV[4])
local band, out, budget = bands(), {}, 100
local reply = { "renewed", -1, 0, st.cap, 0 }
if newer then
  return { "incompatible", newer }
end

local fields, members = {}, {}
for i = 5, #ARGV, 2 do
  fields[#fields + 1] = "c:" .. ARGV[i]
  members[#members + 1], members[#members + 2] = "h:" .. ARGV[i], "a:" .. ARGV[i]
end
local records = redis.call("HMGET", at.state, unpack(fields))
local scores = redis.call("ZMSCORE", at.line, unpack(members))

local scored, changed, furthest, sooner = {}, {}, nil, nil
local function score(member, value, deadline)
  scored[#scored + 1], scored[#scored + 2] = value, member
  if deadline < band.forever then
    furthest = math.max(furthest or 0, deadline)
  end
end

-- renew answers for one claim: the word, the time left and the fence.
local function renew(claim, mode, text, held, alive)
  local r = text and record(text)
  if not r then
    return text and string.sub(text, 2) or "unknown", 0, 0
  elseif r.node ~= node then
    return "taken", 0, 0
  elseif held and held > at.ms then
    local phase = r.phase
    local deadline = lengthen(at, st, r, held, mode)
    if r.phase ~= phase then
      changed[#changed + 1], changed[#changed + 2] = "c:" .. claim, pack(r)
    end
    if deadline ~= held then
      score("h:" .. claim, deadline, deadline)
    end
    if deadline < held then
      sooner = math.min(sooner or deadline, deadline)
    end
    return "held", deadline == band.forever and -1 or deadline - at.ms, tonumber(r.fence)
  elseif alive and alive - band.alive > at.ms then
    if r.weight > st.cap then
      leave(at, st, claim, r, false)
      return "too_heavy", 0, 0
    end
    score("a:" .. claim, band.alive + at.ms + r.wait, at.ms + r.wait)
    return "waiting", r.wait, 0
  end
  return "unknown", 0, 0
end

if st.fmt > 0 then
  touch(at, st) -- leases live on on a full server
end
for i = 5, #ARGV, 2 do
  local n = (i - 3) / 2
  local held, alive = tonumber(scores[2 * n - 1]), tonumber(scores[2 * n])
  local word, left, fence = renew(ARGV[i], ARGV[i + 1], records[n], held, alive)
  reply[#reply + 1], reply[#reply + 2], reply[#reply + 3] = word, left, fence
end
if st.fmt == 0 then
  return reply
end
if #scored > 0 then
  redis.call("ZADD", at.line, unpack(scored))
end
local spent = sweep(at, st, budget)
spent = spent + handoff(at, st, budget - spent, out)
save(at, st, furthest, unpack(changed))
hasten(at, st, sooner, out)
reply[2], reply[3] = tide(at, st, node)
reply[5] = spent >= budget and 1 or 0
tell(out)
return reply
