--[[
claim_force_release: end somebody's hold or wait by its id alone, hand on, and tell its node.
KEYS[1] state (HASH field -> number, c:claim -> record)
KEYS[2] line (ZSET h:, a:, q:, t:claim -> score, see lib/bands)
ARGV[1] claim id    ARGV[2] node ("" = any)    ARGV[3] tombstone (ms)
ARGV[4] linger (ms)    ARGV[5] channel prefix    ARGV[6] name
RETURNS {"released", more} | {"cancelled", more} | {"expired", more} | {"not_held", word}
  | {"incompatible", format}
REPLAY a claim that is gone is not_held    COST O(log n) + at most 100 drops and grants
]]
--- @include "lib/open"
--- @include "lib/record"
--- @include "lib/leave"
--- @include "lib/recount"
--- @include "lib/sweep"
--- @include "lib/handoff"
--- @include "lib/wake"
--- @include "lib/save"
--- @include "lib/tell"
local claim, node, stays = ARGV[1], ARGV[2], tonumber(ARGV[3])
local at, st, known, newer = open(KEYS[1], KEYS[2], ARGV[4], ARGV[5], ARGV[6], claim)
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
leave(at, st, claim, r, deadline ~= nil, "released", stays)
recount(at, st) -- somebody else may have written the claim, uncounted
wake(out, at.channel .. r.node, "released", at.name, claim)
local spent = st.used > 0 and sweep(at, st, budget) or 0
spent = spent + handoff(at, st, budget - spent, out)
save(at, st, at.ms + stays)
tell(out)
local word = "released"
if not deadline then
  word = "cancelled"
elseif deadline <= at.ms then
  word = "expired"
end
return { word, spent >= budget and 1 or 0 }
