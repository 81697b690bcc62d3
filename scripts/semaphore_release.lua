--[[
semaphore_release: give back a hold, or leave the line, and hand on.
KEYS[1] state (HASH field -> number, c:claim -> record)
KEYS[2] line (ZSET h:, a:, q:, t:claim -> score, see lib/bands)
ARGV[1] claim id    ARGV[2] node    ARGV[3] tombstone (ms, 0 = none)
ARGV[4] linger (ms)    ARGV[5] channel prefix    ARGV[6] name
RETURNS {"released", more, fence} | {"cancelled", more, fence} | {"expired", more, fence} | {"not_held", word}
  | {"taken"} | {"incompatible", format}
REPLAY a claim that is gone is not_held    COST O(log n) + at most 100 drops and grants
]]
--- @include "lib/fetch"
--- @include "lib/plainrelease"
local time, kept = fetch(KEYS[1], ARGV[1])
local status, was, plain = plainrelease(time, kept, KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3], ARGV[4])
if status then
  return { status, 0, tonumber(was) }
end

--- @include "lib/plainhandoff"
if plain then
  status, was = plainhandoff(plain, KEYS[1], KEYS[2], ARGV[1], ARGV[5], ARGV[6])
end
if status then
  return { status, 0, tonumber(was) }
end

-- What only the other cases need is not even defined before.
--- @include "lib/assemble"
--- @include "lib/record"
--- @include "lib/bands"
--- @include "lib/leave"
--- @include "lib/fresh"
--- @include "lib/handoff"
--- @include "lib/save"
--- @include "lib/tell"
local claim, node, stays = ARGV[1], ARGV[2], tonumber(ARGV[3])
local at, st, known, newer = assemble(time, kept, KEYS[1], KEYS[2], ARGV[4], ARGV[5], ARGV[6])
local out, budget = {}, 100

if newer then
  return { "incompatible", newer }
end
local r = known and record(known)
if not r then
  -- Its acquire may still be on its way: what it meets must say so.
  if not known and stays > 0 then
    fresh(at, st)
    redis.call("ZREM", at.line, "t:" .. claim) -- needs no memory: the rest works on a full server too
    redis.call("ZADD", at.line, bands().tomb + at.ms + stays, "t:" .. claim)
    st.gone = st.gone + 1
    save(at, st, at.ms + stays, "c:" .. claim, "!gone")
  end
  return { "not_held", known and string.sub(known, 2) or "" }
end
if r.node ~= node then
  return { "taken" }
end

local deadline = tonumber(redis.call("ZSCORE", at.line, "h:" .. claim))
leave(at, st, claim, r, deadline ~= nil, stays > 0 and "gone" or nil, stays)
local spent = handoff(at, st, budget, out)
save(at, st, stays > 0 and at.ms + stays)
tell(out)
local word = "released"
if not deadline then
  word = "cancelled"
elseif deadline <= at.ms then
  word = "expired"
end
return { word, spent >= budget and 1 or 0, tonumber(r.fence) }
