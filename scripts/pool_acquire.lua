--[[
pool_acquire: take a free resource, or join the line.
KEYS[1] state (HASH field -> number, c:claim -> record, r:claim -> resource)
KEYS[2] line (ZSET h:, a:, q:, t:claim, e:, x:, d:resource, u:binding -> score, see lib/bands)
KEYS[3] items (HASH i:resource -> item)
KEYS[4] free (HASH n:, p:resource -> next, previous)
KEYS[5] bindings (HASH b:name -> end, resource)
ARGV[1] claim id    ARGV[2] node    ARGV[3] tail of the record, see lib/record and lib/wants
ARGV[4] priority    ARGV[5] wait lease (ms)    ARGV[6] lease (ms, 0 = forever)    ARGV[7] maximum hold (ms, 0 = none)
ARGV[8] the only resource that will do, with try ("" = any)    ARGV[9] wait (1) or try (0)
ARGV[10] linger (ms)    ARGV[11] channel prefix    ARGV[12] name
RETURNS {"granted", ticket, fence, left_ms, confirmed, resources, more, resource}
  | {"queued", ticket, place, left_ms, ahead, next_ms, first, resources, more}
  | {"full", resources, held, waiting, swept, more} | {"ahead", resources, held, waiting, swept, more}
  | {"gone"} | {"foreign"} | {"incompatible", format}
REPLAY the same claim gets the same answer    COST O(log n) + at most 100 drops and grants
]]
--- @include "lib/pool"
--- @include "lib/int"
--- @include "lib/bands"
--- @include "lib/record"
--- @include "lib/pack"
--- @include "lib/place"
--- @include "lib/wants"
--- @include "lib/quit"
--- @include "lib/reclaim"
--- @include "lib/give"
--- @include "lib/handoff"
--- @include "lib/pick"
--- @include "lib/take"
--- @include "lib/grant"
--- @include "lib/poolfresh"
--- @include "lib/hasten"
--- @include "lib/first"
--- @include "lib/soonest"
--- @include "lib/tide"
--- @include "lib/poolsave"
--- @include "lib/more"
--- @include "lib/tell"
local claim, node, may_wait = ARGV[1], ARGV[2], ARGV[9] == "1"
local at, st, known, newer, resource = pool(KEYS, ARGV[10], ARGV[11], ARGV[12], claim)
local out, budget, sweeps = {}, 100, 80 -- what is left is for pick

-- Guard.
if newer then
  return { "incompatible", newer }
end
if known and string.sub(known, 1, 1) == "!" then
  return { "gone" }
end
local r = {
  node = node, phase = "w", fence = "0", granted = 0, limit = 0, tail = ARGV[3], weight = 1,
  wait = tonumber(ARGV[5]), lease = tonumber(ARGV[6]), max = tonumber(ARGV[7]),
}
local w = wants(r.tail)
w.only = ARGV[8] ~= "" and ARGV[8] or nil

local function queued(ticket, standing, alive, left)
  local band = bands()
  local next_ms, mine = tide(at, st, node)
  local ahead = redis.call("ZCOUNT", at.line, band.queue, "(" .. int(band.queue + standing))
  return { "queued", ticket, standing, alive - at.ms, ahead, next_ms, mine, st.pool.resources, left }
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
      st.pool.resources, 0, resource or "" }
  elseif alive and alive - band.alive > at.ms then
    return queued(tonumber(was.ticket), tonumber(scores[3]) - band.queue, alive - band.alive, 0)
  end
end

-- What is in the way and has expired goes; whoever waits comes first.
local swept, spent = 0, 0
if was then
  quit(at, st, claim, was, resource, held)
  spent = 1
end
local due = st.pool.resources > st.pool.free and (soonest(at) or at.ms + 1) <= at.ms
if st.fmt > 0 and (due or st.waiting > 0 or st.pool.free == 0) then
  swept = reclaim(at, st, sweeps - spent)
  spent = spent + swept
  spent = spent + handoff(at, st, sweeps - spent, out, give(at, st))
end

-- Decide.
-- Only a claim that queues moves the last ticket on, so that it does not run
-- ahead of the clock where nobody waits. A claim that died waiting keeps its own.
local ticket = alive and tonumber(was.ticket) or math.max(st.ticket + 1, at.ms)
local standing = place(ARGV[4], ticket)
local head, head_place = nil, nil
if st.waiting > 0 then
  head, head_place = first(at.line)
end
local key, i, drops = nil, nil, 0
if not head or standing < head_place then
  key, i, drops = pick(at, st, w, budget - spent)
end
spent = spent + drops
-- What has expired and was picked may not have been all that was in the way.
local left = more(at, spent >= sweeps or not key and drops > 0)
if not key and not may_wait then
  if spent > 0 then
    poolsave(at, st)
    hasten(at, st, at.sooner, out)
  end
  tell(out)
  local word = st.pool.free > 0 and head and "ahead" or "full"
  return { word, st.pool.resources, st.used, st.waiting, swept, left }
end

-- Write.
poolfresh(at, st)
r.ticket = ticket
if not key then
  redis.call("ZADD", at.line, bands().alive + at.ms + r.wait, "a:" .. claim, bands().queue + standing, "q:" .. claim)
  st.waiting, st.ticket = st.waiting + 1, math.max(st.ticket, ticket)
  poolsave(at, st, at.ms + r.wait, "c:" .. claim, pack(r))
  hasten(at, st, at.sooner, out)
  tell(out)
  return queued(ticket, standing, at.ms + r.wait, left)
end
take(at, st, claim, w, key, i)
local deadline = grant(at, st, claim, r)
poolsave(at, st, deadline, "c:" .. claim, pack(r), "r:" .. claim, key)
hasten(at, st, math.min(deadline, at.sooner or deadline), out)
tell(out)
return { "granted", ticket, st.fence, deadline - at.ms, r.phase == "g" and 0 or 1, st.pool.resources, left, key }
