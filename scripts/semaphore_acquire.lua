--[[
semaphore_acquire: take weight permits, or join the line.
KEYS[1] state (HASH field -> number, c:claim -> record)
KEYS[2] line (ZSET h:, a:, q:, t:claim -> score, see lib/bands)
ARGV[1] claim id    ARGV[2] node    ARGV[3] tail of the record, see lib/record
ARGV[4] weight    ARGV[5] priority    ARGV[6] wait lease (ms)
ARGV[7] lease (ms, 0 = forever)    ARGV[8] maximum hold (ms, 0 = none)
ARGV[9] capacity    ARGV[10] policy (stored, strict, override)    ARGV[11] wait (1) or try (0)
ARGV[12] linger (ms)    ARGV[13] channel prefix    ARGV[14] name
RETURNS {"granted", ticket, fence, left_ms, confirmed, capacity, more}
  | {"queued", ticket, place, left_ms, ahead, next_ms, first, capacity, more}
  | {"full", capacity, held, waiting, swept, more} | {"ahead", capacity, held, waiting, swept, more}
  | {"too_heavy", capacity, held, waiting} | {"differs", capacity, held, waiting}
  | {"gone"} | {"foreign"} | {"incompatible", format}
REPLAY the same claim gets the same answer    COST O(log n) + at most 100 drops and grants
]]
--- @include "lib/fetch"
--- @include "lib/plaingrant"
local time, kept = fetch(KEYS[1], ARGV[1])
do
  local ticket, fence, left = plaingrant(time, kept, KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[9],
    ARGV[6], ARGV[7], ARGV[8], ARGV[12])
  if ticket then
    return { "granted", ticket, fence, left, 1, tonumber(ARGV[9]), 0 }
  end
end

-- What only the other cases need is not even defined before.
--- @include "lib/assemble"
--- @include "lib/int"
--- @include "lib/bands"
--- @include "lib/record"
--- @include "lib/pack"
--- @include "lib/place"
--- @include "lib/sweep"
--- @include "lib/handoff"
--- @include "lib/leave"
--- @include "lib/grant"
--- @include "lib/fresh"
--- @include "lib/hasten"
--- @include "lib/lowest"
--- @include "lib/first"
--- @include "lib/tide"
--- @include "lib/save"
--- @include "lib/tell"
local claim, node, capacity, policy, may_wait = ARGV[1], ARGV[2], tonumber(ARGV[9]), ARGV[10], ARGV[11] == "1"
local at, st, known, newer = assemble(time, kept, KEYS[1], KEYS[2], ARGV[12], ARGV[13], ARGV[14])
local out, budget = {}, 100

-- Guard.
if newer then
  return { "incompatible", newer }
end
if known and string.sub(known, 1, 1) == "!" then
  return { "gone" }
end
local r = {
  node = node, phase = "w", fence = "0", granted = 0, limit = 0, tail = ARGV[3], weight = tonumber(ARGV[4]),
  wait = tonumber(ARGV[6]), lease = tonumber(ARGV[7]), max = tonumber(ARGV[8]),
}

local function queued(ticket, standing, alive, more, ...)
  local band = bands()
  local next_ms, mine = tide(at, st, node, ...)
  local ahead = redis.call("ZCOUNT", at.line, band.queue, "(" .. int(band.queue + standing))
  return { "queued", ticket, standing, alive - at.ms, ahead, next_ms, mine, st.cap, more }
end

-- The same claim again: the same answer, unless what it got has ended since.
local was, held, alive
if known then
  was = record(known)
  if was.node ~= node then
    return { "foreign" }
  end
  local band = bands()
  local scores = redis.call("ZMSCORE", at.line, "h:" .. claim, "a:" .. claim, "q:" .. claim)
  held, alive = tonumber(scores[1]), tonumber(scores[2])
  if held and held > at.ms then
    return { "granted", tonumber(was.ticket), tonumber(was.fence), held - at.ms, was.phase == "g" and 0 or 1,
      st.cap, 0 }
  elseif alive and alive - band.alive > at.ms then
    return queued(tonumber(was.ticket), tonumber(scores[3]) - band.queue, alive - band.alive, 0)
  end
end

-- The stored capacity rules, unless the caller insists on its own.
if st.cap == 0 then
  st.cap = capacity
elseif st.cap ~= capacity and policy == "strict" then
  return { "differs", st.cap, st.used, st.waiting }
elseif policy == "override" then
  st.cap = capacity
end
if r.weight > st.cap then
  return { "too_heavy", st.cap, st.used, st.waiting }
end

-- Whoever is in the way and has expired goes; whoever waits comes first.
local swept, spent, next_at = 0, 0, nil
if was then
  leave(at, st, claim, was, held ~= nil)
  spent = 1
end
if st.waiting > 0 or st.used + r.weight > st.cap then
  local any
  swept, next_at, any = sweep(at, st, budget)
  if st.used > 0 and any == nil then
    next_at, any = lowest(at)
  end
  if st.used > 0 and not any then
    st.used = 0 -- a cached sum counts as nothing when nothing is held
  end
  spent = spent + swept + handoff(at, st, budget - swept, out)
end
local more = spent >= budget and 1 or 0

-- Decide.
-- Only a claim that queues moves the last ticket on, so that it does not run
-- ahead of the clock where nobody waits. A claim that died waiting keeps its own.
local ticket = alive and tonumber(was.ticket) or math.max(st.ticket + 1, at.ms)
local standing = place(ARGV[5], ticket)
local head, head_place = nil, nil
if st.waiting > 0 then
  head, head_place = first(at.line)
end
local next_in_line = not head or standing < head_place
local fits = st.used + r.weight <= st.cap
if not (next_in_line and fits) and not may_wait then
  if spent > 0 or st.cap ~= at.cap then
    save(at, st)
  end
  tell(out)
  return { fits and "ahead" or "full", st.cap, st.used, st.waiting, swept, more }
end

-- Write.
fresh(at, st)
r.ticket = ticket
if not (next_in_line and fits) then
  redis.call("ZADD", at.line, int(bands().alive + at.ms + r.wait), "a:" .. claim,
    int(bands().queue + standing), "q:" .. claim)
  st.waiting, st.ticket = st.waiting + 1, math.max(st.ticket, ticket)
  at.lasting = head ~= nil or st.used > 0 -- who is in its way was there all along
  save(at, st, at.ms + r.wait, "c:" .. claim, pack(r))
  tell(out)
  if spent == 0 then
    next_at = next_at or false -- the holds are as they were read
  else
    next_at = nil
  end
  if next_in_line then
    return queued(ticket, standing, at.ms + r.wait, more, next_at, claim, at.ms + r.wait)
  end
  -- Of two in one place the line decides who is first.
  local ahead = standing > head_place and head ~= claim and head or nil
  return queued(ticket, standing, at.ms + r.wait, more, next_at, ahead)
end
local deadline = grant(at, st, claim, r)
save(at, st, deadline, "c:" .. claim, pack(r))
hasten(at, st, deadline, out)
tell(out)
return { "granted", ticket, st.fence, deadline - at.ms, r.phase == "g" and 0 or 1, st.cap, more }
