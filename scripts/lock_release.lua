--[[
lock_release: end an entry of a lock, or leave the line; the last entry hands on.
KEYS[1] state (HASH field -> number, c:claim -> record, stem)
KEYS[2] line (ZSET h:, a:, q:, t:claim -> score, see lib/bands)
ARGV[1] claim id    ARGV[2] node    ARGV[3] tombstone (ms, 0 = none)
ARGV[4] linger (ms)    ARGV[5] channel prefix    ARGV[6] name
ARGV[7...] x1: claim id of another entry that was lowered for this
RETURNS {"released", more, fence, entries} | {"cancelled", more} | {"expired", more, fence, entries}
  | {"not_held", word} | {"taken"} | {"incompatible", format}
REPLAY a claim that is gone is not_held    COST O(log n) + O(entries) + at most 100 drops and grants
]]
-- An entry that extended the hold gives back what it has not used, but never what
-- the outermost one's own lease gives, and only where all entries that stay are
-- of the node that calls and have lowered their deadlines for it: none of another
-- node, and none whose grant that node has yet to hear of.
--- @include "lib/fetch"
--- @include "lib/plainrelease"
local time, kept = fetch(KEYS[1], ARGV[1], "stem")
local status, was, plain = plainrelease(time, kept, KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3], ARGV[4])
if status then
  return { status, 0, tonumber(was), 0 }
end

--- @include "lib/plainhandoff"
if plain then
  status, was = plainhandoff(plain, KEYS[1], KEYS[2], ARGV[1], ARGV[5], ARGV[6])
end
if status then
  return { status, 0, tonumber(was), 0 }
end

-- What only the other cases need is not even defined before.
--- @include "lib/assemble"
--- @include "lib/record"
--- @include "lib/bands"
--- @include "lib/leave"
--- @include "lib/fresh"
--- @include "lib/group"
--- @include "lib/entry"
--- @include "lib/move"
--- @include "lib/sweep"
--- @include "lib/handoff"
--- @include "lib/hasten"
--- @include "lib/save"
--- @include "lib/tell"
local claim, node, stays = ARGV[1], ARGV[2], tonumber(ARGV[3])
local at, st, known, newer, stem_text = assemble(time, kept, KEYS[1], KEYS[2], ARGV[4], ARGV[5], ARGV[6])
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
local s = deadline and st.used > 1 and group(at, st, stem_text) or nil
leave(at, st, claim, r, deadline ~= nil, stays > 0 and "gone" or nil, stays)
local e, i = entry(s, claim)
local changes, sooner, unused = {}, nil, 0
if e then
  table.remove(s.entries, i)
  unused = math.max(0, e.ext - (at.ms - e.at))
end
if e and s.entries[1] then
  local lowered = {}
  for n = 7, #ARGV do
    lowered[ARGV[n]] = true
  end
  for _, f in ipairs(s.entries) do
    if f.r.node ~= node or not lowered[f.claim] then
      unused = 0
    end
  end
  if s.deadline < bands().forever then
    s.deadline = math.max(s.own, s.deadline - unused)
  end
  local scores, fields, _, nearer = move(st, s)
  changes, sooner = fields, nearer
  if #scores > 0 then
    redis.call("ZADD", at.line, unpack(scores))
  end
elseif deadline and stem_text and st.used <= 0 then
  redis.call("HDEL", at.state, "stem")
end
local spent = 0
if deadline and st.used > 0 and not (s and s.entries[1]) then
  spent = sweep(at, st, budget) -- inner entries that ended before the outermost one
end
spent = spent + handoff(at, st, budget - spent, out)
save(at, st, stays > 0 and at.ms + stays, unpack(changes))
hasten(at, st, sooner, out)
tell(out)
if not deadline then
  return { "cancelled", spent >= budget and 1 or 0 }
elseif deadline <= at.ms then
  return { "expired", spent >= budget and 1 or 0, tonumber(r.fence), s and #s.entries or 0 }
end
return { "released", spent >= budget and 1 or 0, tonumber(r.fence), s and #s.entries or 0 }
