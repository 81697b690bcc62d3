--[[
lock_acquire: take a lock, join the line, or enter once more what the owner holds.
KEYS[1] state (HASH field -> number, c:claim -> record, stem)
KEYS[2] line (ZSET h:, a:, q:, t:claim -> score, see lib/bands)
ARGV[1] claim id    ARGV[2] node    ARGV[3] tail of the record, see lib/record
ARGV[4] owner ("" = the claim)    ARGV[5] conflict (fail, wait, work, extend)
ARGV[6] access (queued, random, lifo)    ARGV[7] priority    ARGV[8] draw (0 up to 2^32)
ARGV[9] wait lease (ms)    ARGV[10] lease (ms, 0 = forever)    ARGV[11] maximum hold (ms, 0 = none)
ARGV[12] wait (0 = try, 1 = until an end, 2 = without end)
ARGV[13] linger (ms)    ARGV[14] channel prefix    ARGV[15] name
RETURNS {"granted", ticket, fence, left_ms, confirmed, more}
  | {"reentered", ticket, fence, left_ms, confirmed, more, lease_ms, kind, limit_ms, extended_ms, group_ms}
  | {"queued", ticket, place, left_ms, ahead, next_ms, first, more}
  | {"held", held, waiting, swept, more} | {"ahead", held, waiting, swept, more}
  | {"crowded", held, waiting, swept, more} | {"deadlock", held, waiting, swept, more}
  | {"gone"} | {"foreign"} | {"incompatible", format}
REPLAY the same claim gets the same answer    COST O(log n) + O(entries) + at most 100 drops and grants
]]
-- group_ms is what is left of the deadline that all entries have, -1 where it has
-- no end or the outermost one has yet to speak: its first call may bring it nearer.
--- @include "lib/fetch"
--- @include "lib/plaingrant"
local time, kept = fetch(KEYS[1], ARGV[1], "stem")
do
  local ticket, fence, left = plaingrant(time, kept, KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3], "1", "1",
    ARGV[9], ARGV[10], ARGV[11], ARGV[13])
  if ticket then
    return { "granted", ticket, fence, left, 1, 0 }
  end
end

-- What only the other cases need is not even defined before.
--- @include "lib/assemble"
--- @include "lib/int"
--- @include "lib/bands"
--- @include "lib/record"
--- @include "lib/pack"
--- @include "lib/stand"
--- @include "lib/sweep"
--- @include "lib/handoff"
--- @include "lib/leave"
--- @include "lib/grant"
--- @include "lib/fresh"
--- @include "lib/hasten"
--- @include "lib/lowest"
--- @include "lib/first"
--- @include "lib/tide"
--- @include "lib/owner"
--- @include "lib/group"
--- @include "lib/entry"
--- @include "lib/reenter"
--- @include "lib/span"
--- @include "lib/told"
--- @include "lib/save"
--- @include "lib/tell"
local claim, node, wait = ARGV[1], ARGV[2], ARGV[12]
local at, st, known, newer, stem_text = assemble(time, kept, KEYS[1], KEYS[2], ARGV[13], ARGV[14], ARGV[15])
local out, budget = {}, 100

-- Guard.
if newer then
  return { "incompatible", newer }
end
if known and string.sub(known, 1, 1) == "!" then
  return { "gone" }
end
local r = {
  node = node, phase = "w", fence = "0", granted = 0, limit = 0, tail = ARGV[3], weight = 1,
  wait = tonumber(ARGV[9]), lease = tonumber(ARGV[10]), max = tonumber(ARGV[11]),
}

local function queued(ticket, standing, alive, more, ...)
  local band = bands()
  local next_ms, mine = tide(at, st, node, ...)
  local ahead = redis.call("ZCOUNT", at.line, band.queue, "(" .. int(band.queue + standing))
  return { "queued", ticket, standing, alive - at.ms, ahead, next_ms, mine, more }
end

local function reentered(s, e, more)
  local confirmed = e.pending == 0 and not e.fresh and 1 or 0
  local settled = s.entries[1].r.phase ~= "g" -- else its first call may lower what all have
  return { "reentered", tonumber(e.r.ticket), tonumber(e.r.fence), told(at, s, e), confirmed, more, e.r.lease,
    e.r.kind, e.r.limit > 0 and e.r.limit - at.ms or -1, e.ext + e.pending, settled and span(at, s.deadline) or -1 }
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
    local s = group(at, st, stem_text)
    local e = entry(s, claim)
    if e and e.kind ~= "o" then
      return reentered(s, e, 0)
    end
    return { "granted", tonumber(was.ticket), tonumber(was.fence), span(at, held), was.phase == "g" and 0 or 1, 0 }
  elseif alive and alive - band.alive > at.ms then
    return queued(tonumber(was.ticket), tonumber(scores[3]) - band.queue, alive - band.alive, 0)
  end
end

-- Whoever is in the way and has expired goes; whoever waits comes first.
st.cap = 1
local swept, spent, next_at = 0, 0, nil
if was then
  leave(at, st, claim, was, held ~= nil)
  spent = 1
end
if st.waiting > 0 or st.used > 0 then
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
local s = ARGV[4] ~= "" and st.used > 0 and group(at, st, stem_text) or nil

-- refuse saves what the way here has changed; nothing is written for the claim.
local function refuse()
  if spent > 0 then
    save(at, st)
  end
  tell(out)
end

-- Only a claim that queues moves the last ticket on. A claim that died waiting
-- keeps its own.
local ticket = alive and tonumber(was.ticket) or math.max(st.ticket + 1, at.ms)
r.ticket = ticket

-- The owner holds the lock already.
local outer = s and owner(s.entries[1].claim, s.entries[1].r) == ARGV[4] and s.entries[1].r
if outer and (ARGV[5] == "work" or ARGV[5] == "extend") then
  if #s.entries >= 100 then
    refuse()
    return { "crowded", st.used, st.waiting, swept, more }
  end
  local e = reenter(at, st, s, claim, r, ARGV[5] == "extend")
  tell(out)
  return reentered(s, e, more)
end
local stays = outer and outer.max == 0 and (outer.lease == 0 or outer.kind == "r" and outer.phase ~= "d")
if outer and (ARGV[5] == "fail" or stays and wait == "2") then
  refuse()
  return { "deadlock", st.used, st.waiting, swept, more }
end

-- Decide.
local standing = stand(at.line, ARGV[6], ARGV[7], ticket, tonumber(ARGV[8]))
local head, head_place = nil, nil
if st.waiting > 0 then
  head, head_place = first(at.line)
end
local next_in_line = not head or standing < head_place
local fits = st.used == 0
if not (next_in_line and fits) and wait == "0" then
  refuse()
  return { fits and "ahead" or "held", st.used, st.waiting, swept, more }
end

-- Write.
fresh(at, st)
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
return { "granted", ticket, st.fence, deadline - at.ms, r.phase == "g" and 0 or 1, more }
