--[[
pool_release: give back a hold and its resource, or leave the line, and hand on.
KEYS[1] state (HASH field -> number, c:claim -> record, r:claim -> resource)
KEYS[2] line (ZSET h:, a:, q:, t:claim, e:, x:, d:resource, u:binding -> score, see lib/bands)
KEYS[3] items (HASH i:resource -> item)
KEYS[4] free (HASH n:, p:resource -> next, previous)
KEYS[5] bindings (HASH b:name -> end, resource)
ARGV[1] claim id    ARGV[2] node    ARGV[3] tombstone (ms, 0 = none)
ARGV[4] rest of the resource (ms, 0 = none)    ARGV[5] why it rests
ARGV[6] linger (ms)    ARGV[7] channel prefix    ARGV[8] name
ARGV[9] fence of the grant that it was asked for
RETURNS {"released", more, fence, stays} | {"cancelled", more, fence, stays} | {"expired", more, fence, stays}
  | {"not_held", word} | {"taken"} | {"incompatible", format}
REPLAY a claim that is gone is not_held    COST O(log n) + at most 100 drops and grants
]]
-- A holder whose time has passed, or who lost its grant to another one of the claim,
-- has no say in how long the resource rests.
--- @include "lib/pool"
--- @include "lib/record"
--- @include "lib/bands"
--- @include "lib/quit"
--- @include "lib/poolfresh"
--- @include "lib/give"
--- @include "lib/handoff"
--- @include "lib/hasten"
--- @include "lib/poolsave"
--- @include "lib/more"
--- @include "lib/tell"
local claim, node, stays = ARGV[1], ARGV[2], tonumber(ARGV[3])
local at, st, known, newer, resource = pool(KEYS, ARGV[6], ARGV[7], ARGV[8], claim)
local out, budget = {}, 100

if newer then
  return { "incompatible", newer }
end
local r = known and record(known)
if not r then
  -- Its acquire may still be on its way: what it meets must say so.
  if not known and stays > 0 then
    redis.call("ZREM", at.line, "t:" .. claim) -- needs no memory: the rest works on a full server too
    poolfresh(at, st)
    redis.call("ZADD", at.line, bands().tomb + at.ms + stays, "t:" .. claim)
    st.gone = st.gone + 1
    poolsave(at, st, at.ms + stays, "c:" .. claim, "!gone")
  end
  return { "not_held", known and string.sub(known, 2) or "" }
end
if r.node ~= node then
  return { "taken" }
end

local deadline = tonumber(redis.call("ZSCORE", at.line, "h:" .. claim))
local in_time = deadline and deadline > at.ms
local kept = quit(at, st, claim, r, resource, deadline, stays > 0 and "gone" or nil, stays,
  in_time and r.fence == ARGV[9] and tonumber(ARGV[4]) or 0, ARGV[5])
local spent = handoff(at, st, budget, out, give(at, st))
poolsave(at, st, stays > 0 and at.ms + stays)
hasten(at, st, at.sooner, out)
tell(out)
local word = "released"
if not deadline then
  word = "cancelled"
elseif not in_time then
  word = "expired"
end
return { word, more(at, spent >= budget), tonumber(r.fence), kept and 1 or 0 }
