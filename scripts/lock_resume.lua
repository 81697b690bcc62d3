--[[
lock_resume: another node takes up a detached entry.
KEYS[1] state (HASH field -> number, c:claim -> record, stem)
KEYS[2] line (ZSET h:, a:, q:, t:claim -> score, see lib/bands)
ARGV[1] claim id    ARGV[2] node that detached it    ARGV[3] node that takes it up
ARGV[4] linger (ms)    ARGV[5] channel prefix    ARGV[6] name
ARGV[7] mode (beat, "beat <zombie limit, ms>")
RETURNS {"resumed", left_ms, limit_ms, record} | {"attached", left_ms, limit_ms, record}
  | {"not_held", word} | {"taken"} | {"incompatible", format}
REPLAY the new node may ask again; the answer is attached then   COST O(log n) + O(entries)
]]
--- @include "lib/open"
--- @include "lib/record"
--- @include "lib/pack"
--- @include "lib/group"
--- @include "lib/entry"
--- @include "lib/prolong"
--- @include "lib/move"
--- @include "lib/told"
--- @include "lib/touch"
--- @include "lib/save"
local claim, from, to = ARGV[1], ARGV[2], ARGV[3]
local at, st, known, newer, stem_text = open(KEYS[1], KEYS[2], ARGV[4], ARGV[5], ARGV[6], claim, "stem")

if newer then
  return { "incompatible", newer }
end
local r = known and record(known)
local s = r and group(at, st, stem_text)
local e = entry(s, claim)
if not e then
  return { "not_held", known and not r and string.sub(known, 2) or "" }
end
r = e.r
if r.node ~= from and (r.node ~= to or r.phase == "d") then
  return { "taken" } -- by a third node, or this one has detached it again
end
local detached = r.node == from and r.phase == "d"
if detached then
  touch(at, st) -- a full server must not keep a hold from its new holder
  r.node, r.phase, e.changed = to, "h", true
  prolong(at, st, s, e, ARGV[7])
  local scores, fields, furthest = move(st, s)
  if #scores > 0 then
    redis.call("ZADD", at.line, unpack(scores))
  end
  save(at, st, furthest, unpack(fields))
end
return { detached and "resumed" or "attached", told(at, s, e), r.limit > 0 and r.limit - at.ms or -1, pack(r) }
