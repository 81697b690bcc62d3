--[[
lock_requeue: a waiting claim goes to the end of the line.
KEYS[1] state (HASH field -> number, c:claim -> record, stem)
KEYS[2] line (ZSET h:, a:, q:, t:claim -> score, see lib/bands)
ARGV[1] claim id    ARGV[2] node    ARGV[3] ticket that it has
ARGV[4] priority    ARGV[5] linger (ms)    ARGV[6] channel prefix    ARGV[7] name
RETURNS {"requeued", ticket, place, left_ms, ahead, next_ms, first, more} | {"not_waiting"} | {"incompatible", format}
REPLAY a claim that has another ticket stays where it is    COST O(log n) + at most 100 drops and grants
]]
-- not_waiting: what became of it is for its heartbeat to say.
--- @include "lib/open"
--- @include "lib/int"
--- @include "lib/bands"
--- @include "lib/record"
--- @include "lib/pack"
--- @include "lib/place"
--- @include "lib/touch"
--- @include "lib/sweep"
--- @include "lib/handoff"
--- @include "lib/tide"
--- @include "lib/save"
--- @include "lib/tell"
local claim, node, ticket = ARGV[1], ARGV[2], ARGV[3]
local at, st, known, newer = open(KEYS[1], KEYS[2], ARGV[5], ARGV[6], ARGV[7], claim)
local out, budget, band = {}, 100, bands()

if newer then
  return { "incompatible", newer }
end
local r = known and record(known)
local scores = redis.call("ZMSCORE", at.line, "a:" .. claim, "q:" .. claim)
local alive, standing = tonumber(scores[1]), tonumber(scores[2])
if not r or r.node ~= node or not alive or not standing or alive - band.alive <= at.ms then
  return { "not_waiting" }
end
standing = standing - band.queue
if r.ticket == ticket then
  r.ticket = math.max(st.ticket + 1, at.ms)
  st.ticket, standing = r.ticket, place(ARGV[4], r.ticket)
end
touch(at, st)
redis.call("ZADD", at.line, band.alive + at.ms + r.wait, "a:" .. claim, band.queue + standing, "q:" .. claim)
redis.call("HSET", at.state, "c:" .. claim, pack(r)) -- before the hand-off, which may grant it
local spent = sweep(at, st, budget)
spent = spent + handoff(at, st, budget - spent, out)
save(at, st, at.ms + r.wait)
local next_ms, mine = tide(at, st, node)
local ahead = redis.call("ZCOUNT", at.line, band.queue, "(" .. int(band.queue + standing))
tell(out)
return { "requeued", tonumber(r.ticket), standing, r.wait, ahead, next_ms, mine, spent >= budget and 1 or 0 }
