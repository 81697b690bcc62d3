--[[
semaphore_renew: the calls of a node's own claims: heartbeats, confirmations, renewals.
KEYS[1] state (HASH field -> number, c:claim -> record)
KEYS[2] line (ZSET h:, a:, q:, t:claim -> score, see lib/bands)
ARGV[1] node    ARGV[2] linger (ms)    ARGV[3] channel prefix    ARGV[4] name
ARGV[5...] x2: claim id, mode (beat, renew, detach)
RETURNS {"renewed", next_ms, first, capacity, more, ...} | {"incompatible", format}
REPLAY a lease is counted from now; a fixed one starts once    COST O(log n) a claim + at most 100 drops and grants
]]
-- For each claim three fields follow: a word, the milliseconds left, the fence;
-- see lib/beats.
--- @include "lib/fetch"
--- @include "lib/plainrenew"
local time, kept = fetch(KEYS[1], ARGV[5])
do
  local left, fence = plainrenew(time, kept, KEYS[1], KEYS[2], ARGV[5], ARGV[1], #ARGV == 6 and ARGV[6], ARGV[2])
  if left then
    return { "renewed", -1, 0, tonumber(string.match(kept[2], "^%d+")), 0, "held", left, fence }
  end
end

-- What only the other cases need is not even defined before.
--- @include "lib/assemble"
--- @include "lib/beats"
--- @include "lib/sweep"
--- @include "lib/handoff"
--- @include "lib/hasten"
--- @include "lib/tide"
--- @include "lib/save"
--- @include "lib/tell"
local node = ARGV[1]
local at, st, _, newer = assemble(time, kept, KEYS[1], KEYS[2], ARGV[2], ARGV[3], ARGV[4])
local out, budget = {}, 100
local reply = { "renewed", -1, 0, st.cap, 0 }
if newer then
  return { "incompatible", newer }
end
local furthest, changed, sooner = beats(at, st, node, ARGV, 5, reply)
if st.fmt == 0 then
  return reply
end
local spent = sweep(at, st, budget)
spent = spent + handoff(at, st, budget - spent, out)
save(at, st, furthest, unpack(changed))
hasten(at, st, sooner, out)
reply[2], reply[3] = tide(at, st, node)
reply[5] = spent >= budget and 1 or 0
tell(out)
return reply
