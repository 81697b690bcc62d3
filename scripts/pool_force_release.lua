--[[
pool_force_release: end somebody's hold or wait by its id alone, hand on, and tell its node.
KEYS[1] state (HASH field -> number, c:claim -> record, r:claim -> resource)
KEYS[2] line (ZSET h:, a:, q:, t:claim, e:, x:, d:resource, u:binding -> score, see lib/bands)
KEYS[3] items (HASH i:resource -> item)
KEYS[4] free (HASH n:, p:resource -> next, previous)
KEYS[5] bindings (HASH b:name -> end, resource)
ARGV[1] claim id    ARGV[2] node ("" = any)    ARGV[3] tombstone (ms)
ARGV[4] linger (ms)    ARGV[5] channel prefix    ARGV[6] name
RETURNS {"released", more} | {"cancelled", more} | {"expired", more} | {"not_held", word}
  | {"incompatible", format}
REPLAY a claim that is gone is not_held    COST O(log n) + at most 100 drops and grants
]]
--- @include "lib/pool"
--- @include "lib/record"
--- @include "lib/quit"
--- @include "lib/reclaim"
--- @include "lib/give"
--- @include "lib/handoff"
--- @include "lib/hasten"
--- @include "lib/wake"
--- @include "lib/poolsave"
--- @include "lib/more"
--- @include "lib/tell"
local claim, node, stays = ARGV[1], ARGV[2], tonumber(ARGV[3])
local at, st, known, newer, resource = pool(KEYS, ARGV[4], ARGV[5], ARGV[6], claim)
local out, budget = {}, 100

if newer then
  return { "incompatible", newer }
end
local r = known and record(known)
if not r then
  return { "not_held", known and string.sub(known, 2) or "" }
elseif node ~= "" and r.node ~= node then
  return { "not_held", "" } -- another node has resumed it: not the one that is meant
end
local deadline = tonumber(redis.call("ZSCORE", at.line, "h:" .. claim))
quit(at, st, claim, r, resource, deadline, "released", stays)
wake(out, at.channel .. r.node, "released", at.name, claim)
local spent = reclaim(at, st, budget)
spent = spent + handoff(at, st, budget - spent, out, give(at, st))
poolsave(at, st, at.ms + stays)
hasten(at, st, at.sooner, out)
tell(out)
local word = "released"
if not deadline then
  word = "cancelled"
elseif deadline <= at.ms then
  word = "expired"
end
return { word, more(at, spent >= budget) }
