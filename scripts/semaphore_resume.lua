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
--- @include "lib/resume"
--- @include "lib/bands"
--- @include "lib/pack"
--- @include "lib/save"
local claim = ARGV[1]
local at, st, known, newer = open(KEYS[1], KEYS[2], ARGV[4], ARGV[5], ARGV[6], claim)
local forever = bands().forever

if newer then
  return { "incompatible", newer }
end
local word, r, deadline = resume(at, st, known, claim, ARGV[2], ARGV[3])
if word == "not_held" then
  return { "not_held", known and string.sub(known, 1, 1) == "!" and string.sub(known, 2) or "" }
elseif word == "taken" then
  return { "taken" }
end
local text = pack(r)
local left = deadline == forever and -1 or deadline - at.ms
local limit = r.limit > 0 and r.limit - at.ms or -1
if word == "attached" then
  return { "attached", left, limit, text }
end
redis.call("ZADD", at.line, deadline, "h:" .. claim)
save(at, st, deadline < forever and deadline or nil, "c:" .. claim, text)
return { "resumed", left, limit, text }
