--[[
pool_resume: another node takes up a detached hold of a resource.
KEYS[1] state (HASH field -> number, c:claim -> record, r:claim -> resource)
KEYS[2] line (ZSET h:, a:, q:, t:claim, e:, x:, d:resource, u:binding -> score, see lib/bands)
KEYS[3] items (HASH i:resource -> item)
KEYS[4] free (HASH n:, p:resource -> next, previous)
KEYS[5] bindings (HASH b:name -> end, resource)
ARGV[1] claim id    ARGV[2] node that detached it    ARGV[3] node that takes it up
ARGV[4] linger (ms)    ARGV[5] channel prefix    ARGV[6] name
RETURNS {"resumed", left_ms, limit_ms, record, resource} | {"attached", left_ms, limit_ms, record, resource}
  | {"not_held", word} | {"taken"} | {"incompatible", format}
REPLAY the new node may ask again; the answer is attached then   COST O(log n)
]]
--- @include "lib/pool"
--- @include "lib/resume"
--- @include "lib/bands"
--- @include "lib/pack"
--- @include "lib/poolsave"
local claim = ARGV[1]
local at, st, known, newer, resource = pool(KEYS, ARGV[4], ARGV[5], ARGV[6], claim)
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
  return { "attached", left, limit, text, resource or "" }
end
redis.call("ZADD", at.line, deadline, "h:" .. claim)
poolsave(at, st, deadline < forever and deadline or nil, "c:" .. claim, text)
return { "resumed", left, limit, text, resource or "" }
