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
-- For each claim one word follows, see lib/restore, and then how much is held and how
-- many wait.
--- @include "lib/open"
--- @include "lib/restore"
--- @include "lib/leave"
--- @include "lib/fresh"
--- @include "lib/sweep"
--- @include "lib/handoff"
--- @include "lib/tide"
--- @include "lib/save"
--- @include "lib/tell"
local node, capacity = ARGV[1], tonumber(ARGV[2])
local at, st, _, newer = open(KEYS[1], KEYS[2], ARGV[3], ARGV[4], ARGV[5])
local out, budget = {}, 100
local reply = { "restored", -1, 0, 0, 0 }

if newer then
  return { "incompatible", newer }
end
fresh(at, st)
if st.cap == 0 then
  st.cap = capacity
end
local furthest = 0
for i = 6, #ARGV, 3 do
  local word, ends = restore(at, st, node, ARGV[i], tonumber(ARGV[i + 1]), ARGV[i + 2], function(claim, was, held)
    leave(at, st, claim, was, held ~= nil)
  end)
  reply[#reply + 1], furthest = word, math.max(furthest, ends)
end
local spent = sweep(at, st, budget)
spent = spent + handoff(at, st, budget - spent, out)
save(at, st, furthest > 0 and furthest or nil)
reply[2], reply[3] = tide(at, st, node)
reply[4], reply[5] = st.cap, spent >= budget and 1 or 0
reply[#reply + 1], reply[#reply + 2] = st.used, st.waiting
tell(out)
return reply
