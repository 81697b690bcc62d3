--[[
lock_renew: the calls of a node's own claims: heartbeats, confirmations, renewals, extensions.
KEYS[1] state (HASH field -> number, c:claim -> record, stem)
KEYS[2] line (ZSET h:, a:, q:, t:claim -> score, see lib/bands)
ARGV[1] node    ARGV[2] linger (ms)    ARGV[3] channel prefix    ARGV[4] name
ARGV[5...] x2: claim id, mode (beat, "beat <zombie limit, ms>", renew, detach,
"extend <ms> <call id>")
RETURNS {"renewed", next_ms, first, capacity, more, ...} | {"incompatible", format}
REPLAY a lease is counted from now; an extension is added once    COST O(log n) a claim + at most 100 drops and grants
]]
-- For each claim three fields follow: a word, the milliseconds left, the fence;
-- see semaphore_renew. The entries of one owner have a common deadline, which
-- the outermost one renews: the others follow it.
--- @include "lib/fetch"
--- @include "lib/plainrenew"
local time, kept = fetch(KEYS[1], ARGV[5], "stem")
do
  local left, fence = plainrenew(time, kept, KEYS[1], KEYS[2], ARGV[5], ARGV[1], #ARGV == 6 and ARGV[6], ARGV[2])
  if left then
    return { "renewed", -1, 0, tonumber(string.match(kept[2], "^%d+")), 0, "held", left, fence }
  end
end

-- What only the other cases need is not even defined before.
--- @include "lib/assemble"
--- @include "lib/bands"
--- @include "lib/record"
--- @include "lib/group"
--- @include "lib/entry"
--- @include "lib/prolong"
--- @include "lib/move"
--- @include "lib/told"
--- @include "lib/touch"
--- @include "lib/leave"
--- @include "lib/sweep"
--- @include "lib/handoff"
--- @include "lib/hasten"
--- @include "lib/tide"
--- @include "lib/save"
--- @include "lib/tell"
local node = ARGV[1]
local at, st, _, newer, stem_text = assemble(time, kept, KEYS[1], KEYS[2], ARGV[2], ARGV[3], ARGV[4])
local band, out, budget = bands(), {}, 100
local reply = { "renewed", -1, 0, st.cap, 0 }
if newer then
  return { "incompatible", newer }
end

local fields, members = {}, {}
for i = 5, #ARGV, 2 do
  fields[#fields + 1], members[#members + 1] = "c:" .. ARGV[i], "a:" .. ARGV[i]
end
local texts = redis.call("HMGET", at.state, unpack(fields))
local alive = redis.call("ZMSCORE", at.line, unpack(members))
local s = st.used > 0 and group(at, st, stem_text) or nil
if st.fmt > 0 then
  touch(at, st) -- leases live on on a full server
end

-- renew takes one claim's call and returns its word.
local scores, furthest = {}, nil
local function renew(claim, mode, text, lives)
  local r = text and record(text)
  local e = entry(s, claim)
  if not r then
    return text and string.sub(text, 2) or "unknown"
  elseif r.node ~= node then
    return "taken"
  elseif e then
    prolong(at, st, s, e, mode)
    return "held"
  elseif lives and lives - band.alive > at.ms then
    furthest = math.max(furthest or 0, at.ms + r.wait)
    scores[#scores + 1], scores[#scores + 2] = band.alive + at.ms + r.wait, "a:" .. claim
    return "waiting", r.wait
  end
  return "unknown"
end
for n, text in ipairs(texts) do
  local claim = ARGV[2 * n + 3]
  local r = text and not alive[n] and not entry(s, claim) and record(text)
  if r and r.node == node and r.phase ~= "w" and not redis.call("ZSCORE", at.line, "h:" .. claim) then
    leave(at, st, claim, r, false) -- somebody has deleted the line
  end
end
for i = 5, #ARGV, 2 do
  local n = (i - 3) / 2
  local word, left = renew(ARGV[i], ARGV[i + 1], texts[n], tonumber(alive[n]))
  reply[#reply + 1], reply[#reply + 2], reply[#reply + 3] = word, left or 0, 0
end
if st.fmt == 0 then
  return reply
end

local changes, sooner = {}, nil
if s then
  local moved, last
  moved, changes, last, sooner = move(st, s)
  for _, value in ipairs(moved) do
    scores[#scores + 1] = value
  end
  furthest = last and math.max(furthest or 0, last) or furthest
  for i = 5, #ARGV, 2 do
    local at_reply = 6 + (i - 5) / 2 * 3
    if reply[at_reply] == "held" then
      local e = entry(s, ARGV[i])
      reply[at_reply + 1], reply[at_reply + 2] = told(at, s, e), tonumber(e.r.fence)
    end
  end
end
if #scores > 0 then
  redis.call("ZADD", at.line, unpack(scores))
end
local spent = sweep(at, st, budget)
spent = spent + handoff(at, st, budget - spent, out)
save(at, st, furthest, unpack(changes))
hasten(at, st, sooner, out)
reply[2], reply[3] = tide(at, st, node)
reply[5] = spent >= budget and 1 or 0
tell(out)
return reply
