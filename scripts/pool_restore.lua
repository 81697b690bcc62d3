--[[
pool_restore: a node's waiting claims that the server no longer knows stand where they stood.
KEYS[1] state (HASH field -> number, c:claim -> record, r:claim -> resource)
KEYS[2] line (ZSET h:, a:, q:, t:claim, e:, x:, d:resource, u:binding -> score, see lib/bands)
KEYS[3] items (HASH i:resource -> item)
KEYS[4] free (HASH n:, p:resource -> next, previous)
KEYS[5] bindings (HASH b:name -> end, resource)
ARGV[1] node    ARGV[2] capacity, if none is stored: 1    ARGV[3] linger (ms)
ARGV[4] channel prefix    ARGV[5] name
ARGV[6...] x3: claim id, place, record with its ticket
RETURNS {"restored", next_ms, first, resources, more, ...} | {"incompatible", format}
REPLAY a claim that is known stays as it is    COST O(log n) a claim + at most 100 drops and grants
]]
-- For each claim one word follows, see lib/restore.
--- @include "lib/pool"
--- @include "lib/restore"
--- @include "lib/quit"
--- @include "lib/poolfresh"
--- @include "lib/reclaim"
--- @include "lib/give"
--- @include "lib/handoff"
--- @include "lib/hasten"
--- @include "lib/tide"
--- @include "lib/poolsave"
--- @include "lib/more"
--- @include "lib/tell"
local node = ARGV[1]
local at, st, _, newer = pool(KEYS, ARGV[3], ARGV[4], ARGV[5])
local out, budget = {}, 100
local reply = { "restored", -1, 0, 0, 0 }

if newer then
  return { "incompatible", newer }
end
poolfresh(at, st)
if st.cap == 0 then
  st.cap = tonumber(ARGV[2])
end
local furthest = 0
for i = 6, #ARGV, 3 do
  local word, ends = restore(at, st, node, ARGV[i], tonumber(ARGV[i + 1]), ARGV[i + 2], function(claim, was, held)
    quit(at, st, claim, was, redis.call("HGET", at.state, "r:" .. claim), held)
  end)
  reply[#reply + 1], furthest = word, math.max(furthest, ends)
end
local spent = reclaim(at, st, budget)
spent = spent + handoff(at, st, budget - spent, out, give(at, st))
poolsave(at, st, furthest > 0 and furthest or nil)
hasten(at, st, at.sooner, out)
reply[2], reply[3] = tide(at, st, node)
reply[4], reply[5] = st.pool.resources, more(at, spent >= budget)
tell(out)
return reply
