--[[
notice_set: an operator tells all clients to pause names of some kinds, or some of their processes to drain.
KEYS[1] notice (HASH pause:kind, n:node, l:label -> text)
ARGV[1] for how long it lasts (ms; 0 = not any more, of a drain without end)
ARGV[2] reason of a pause; of a drain drain, with a reason, or stop    ARGV[3] id of the call
ARGV[4...] x2: field that is set, the number that the caller has seen in it
RETURNS {"set", number, left_ms} | {"stale", number, left_ms, what, field} | {"crowded"}
REPLAY the same call is answered again    COST O(n) of at most 10 000 fields
]]
-- Every client reads the notice. Its fields are pause:<kind>, of all names of a kind; n:<node>; and l:<label>, of
-- all processes with that label or, where it ends in *, with one that begins so. Each is a text of words:
--   number  greater than that of each older text
--   by      the id of the call
--   until   when it ends by itself (ms); 0 where a pause or a drain was ended, and of a drain without end
--   what    the reason of the pause, any bytes; of a drain drain, or drain and its reason, or stop
-- Fields that one call sets have the same number. A notice is forgotten a day after it was set last and its pauses and
-- drains are over; a drain without end counts as over after 29 days. Until then a late copy of an older call changes
-- nothing. A field of a drain that is over goes after a day, when another one is set; one that is not, only if there
-- are 100, the oldest first. A number of more than 15 digits makes its text damaged: it counts as nothing. Of a notice
-- with more than 10 000 fields clients read the pauses and their own node and label, and no other drain can be set.
--- @include "state/now"
--- @include "state/int"
local day, most, pauses = 86400000, 100, { ["pause:lock"] = true, ["pause:pool"] = true, ["pause:sem"] = true }
local by, seen, set = ARGV[3], {}, {}
for i = 4, #ARGV, 2 do
  seen[ARGV[i]], set[#set + 1] = ARGV[i + 1] + 0, ARGV[i]
end
local ms = now(redis.call("TIME"))
local number, ends, drains, old, lives = ms, ms, 0, {}, {}
local drain = not pauses[set[1]]
local all = {}
if redis.call("HLEN", KEYS[1]) > 10000 then
  local own = { "pause:lock", "pause:pool", "pause:sem", drain and set[1] or nil }
  local texts = redis.call("HMGET", KEYS[1], unpack(own))
  for i = 1, #own do
    all[2 * i - 1], all[2 * i] = own[i], texts[i] or ""
  end
  drains = drain and texts[4] and 0 or most
else
  all = redis.call("HGETALL", KEYS[1])
end
--- when a drain is over (ms)
local function over(rev, till, what)
  return till > 0 and till or string.find(what or "", "^drain") and rev + 29 * day or 0
end
local again, mine, lasts = 0, 0, 0
for i = 1, #all, 2 do
  local rev, id, till, what = string.match(all[i + 1], "^(%d+) (%S+) (%d+) (.*)$")
  rev, till = rev and #rev < 16 and rev + 0 or 0, till and #till < 16 and till + 0 or 0
  number = math.max(number, rev + 1)
  local known = seen[all[i]]
  if known and id == by then
    again, mine, lasts = again + 1, rev, math.max(till - ms, 0)
  elseif known and rev > known then
    return { "stale", int(rev), int(math.max(till - ms, 0)), what, all[i] }
  elseif pauses[all[i]] and not known then
    ends = math.max(ends, till)
  elseif not known then
    local last = over(rev, till, what)
    ends = math.max(ends, math.min(last, ms + 366 * day)) -- a later end is forged
    if rev >= ms - day then
      drains = drains + 1
    elseif last > ms then
      lives[#lives + 1] = { rev, all[i] }
    else
      old[math.min(#old, most - 1) + 1] = all[i] -- more are forged
    end
  end
end
if again == #set then
  return { "set", int(mine), int(lasts) }
elseif drain and drains >= most then
  return { "crowded" }
end
local till = ARGV[1] + 0
if till > 0 then
  till = ms + till
end
if drain then
  ends = math.max(ends, over(ms, till, ARGV[2]))
  table.sort(lives, function(a, b)
    return a[1] < b[1]
  end)
  for i = 1, math.min(drains + #lives + 1, 2 * most) - most do
    old[i] = lives[i][2]
  end
end
local gone, written = {}, {}
for i = 1, #set do
  gone[i] = set[i]
  written[2 * i - 1] = set[i]
  written[2 * i] = int(number) .. " " .. by .. " " .. int(till) .. " " .. ARGV[2]
end
for i = 1, #old do
  gone[#set + i] = old[i]
end
redis.call("HDEL", KEYS[1], unpack(gone))
redis.call("HSET", KEYS[1], unpack(written))
redis.call("PEXPIREAT", KEYS[1], int(math.max(ends, till) + day))
return { "set", int(number), int(math.max(till - ms, 0)) }
