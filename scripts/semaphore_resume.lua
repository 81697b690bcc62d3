--[[
semaphore_resume: another node takes up a detached hold.
KEYS[1] state (HASH field -> number, c:claim -> record)
KEYS[2] line (ZSET h:, a:, q:, t:claim -> score, see lib/bands)
ARGV[1] claim id    ARGV[2] node that detached it    ARGV[3] node that takes it up
ARGV[4] linger (ms)    ARGV[5] channel prefix    ARGV[6] name
RETURNS {"resumed", left_ms, limit_ms, record} | {"attached", left_ms, limit_ms, record}
  | {"not_held", word} | {"taken"} | {"incompatible", format}
REPLAY the new node may ask again; the answer is attached then   COST O(log n)
]]
--- @include "lib/open"
--- @include "lib/bands"
--- @include "lib/record"
--- @include "lib/pack"
--- @include "lib/lengthen"
--- @include "lib/touch"
--- @include "lib/wake"
--- @include "lib/save"
--- @include "lib/tell"
local claim, from, to = ARGV[1], ARGV[2], ARGV[3]
local at, st, known, newer = open(KEYS[1], KEYS[2], ARGV[4], ARGV[5], ARGV[6], claim)
local out = {}

if newer then
  return { "incompatible", newer }
end
local r = known and record(known)
local deadline = r and tonumber(redis.call("ZSCORE", at.line, "h:" .. claim))
if not deadline or deadline <= at.ms then
  return { "not_held", known and not r and string.sub(known, 2) or "" }
elseif r.node ~= from and (r.node ~= to or r.phase == "d") then
  return { "taken" } -- by a third node, or this one has detached it again
end
local detached = r.node == from and r.phase == "d"
if detached then
  touch(at, st) -- a full server must not keep a hold from its new holder
  if from ~= to then
    wake(out, at.channel .. from, "taken", at.name, claim)
  end
  r.node, r.phase = to, "h"
end
if detached then
  deadline = lengthen(at, st, r, deadline, "beat")
  redis.call("ZADD", at.line, deadline, "h:" .. claim)
  save(at, st, deadline < bands().forever and deadline or nil, "c:" .. claim, pack(r))
  tell(out)
end
local left = deadline == bands().forever and -1 or deadline - at.ms
local limit = r.limit > 0 and r.limit - at.ms or -1
if not detached then
  return { "attached", left, limit, pack(r) }
end
return { "resumed", left, limit, pack(r) }
