--[[
pool_renew: the calls of a node's own claims on a pool: heartbeats, confirmations, renewals.
KEYS[1] state (HASH field -> number, c:claim -> record, r:claim -> resource)
KEYS[2] line (ZSET h:, a:, q:, t:claim, e:, x:, d:resource, u:binding -> score, see lib/bands)
KEYS[3] items (HASH i:resource -> item)
KEYS[4] free (HASH n:, p:resource -> next, previous)
KEYS[5] bindings (HASH b:name -> end, resource)
ARGV[1] node    ARGV[2] linger (ms)    ARGV[3] channel prefix    ARGV[4] name
ARGV[5...] x2: claim id, mode (beat, renew, detach)
RETURNS {"renewed", next_ms, first, resources, more, ...} | {"incompatible", format}
REPLAY a lease is counted from now; a fixed one starts once    COST O(log n) a claim + at most 100 drops and grants
]]
-- For each claim four fields follow: a word, the milliseconds left, the fence, see
-- lib/beats, and the resource that it holds, "" for none.
--- @include "lib/pool"
--- @include "lib/beats"
--- @include "lib/quit"
--- @include "lib/reclaim"
--- @include "lib/give"
--- @include "lib/handoff"
--- @include "lib/hasten"
--- @include "lib/tide"
--- @include "lib/poolsave"
--- @include "lib/more"
--- @include "lib/tell"
local node = ARGV[1]
local at, st, _, newer = pool(KEYS, ARGV[2], ARGV[3], ARGV[4])
local out, budget, fields = {}, 100, {}
local reply = { "renewed", -1, 0, st.pool.resources, 0 }
if newer then
  return { "incompatible", newer }
end
for i = 5, #ARGV, 2 do
  fields[#fields + 1] = "r:" .. ARGV[i]
end
local resources = redis.call("HMGET", at.state, unpack(fields))
local furthest, changed, sooner = beats(at, st, node, ARGV, 5, reply, function(n)
  return resources[n] or ""
end, function(n, claim, r)
  quit(at, st, claim, r, resources[n])
  resources[n] = false
end)
if st.fmt == 0 then
  return reply
end
local spent = reclaim(at, st, budget)
spent = spent + handoff(at, st, budget - spent, out, give(at, st))
poolsave(at, st, furthest, unpack(changed))
hasten(at, st, sooner and at.sooner and math.min(sooner, at.sooner) or sooner or at.sooner, out)
reply[2], reply[3] = tide(at, st, node)
reply[4], reply[5] = st.pool.resources, more(at, spent >= budget)
tell(out)
return reply
