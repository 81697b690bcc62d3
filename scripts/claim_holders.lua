--[[
claim_holders: some of the holds, in no order.
KEYS[1] state (HASH v -> values, c:claim -> record; STRING see state/thin)
KEYS[2] line (ZSET place-claim, h:, t:claim, - -> score, see state/score)
ARGV[1] cursor (0 to begin)    ARGV[2] about how many
RETURNS {"page", cursor, now_ms, ...} | {"incompatible", format}
REPLAY reads only    COST O(page)
]]
-- The cursor is 0 when all have been seen. For each hold four fields follow:
-- the claim, the milliseconds left (-1 = no end), the record and, in a pool, the
-- resource, else "". A name that has become thin in the midst of it has no more than one hold.
--- @include "state/fetch"
--- @include "state/now"
--- @include "state/number"
--- @include "state/thin"
--- @include "state/score"
--- @include "line/remaining"
local time, kept = fetch(KEYS, nil, "fmt")
local at = { ms = now(time) }
local st, newer = nil, number_newer(kept[1], kept[3])
if kept.thin then
  st, newer = thin_open(KEYS[1], kept.thin, at.ms)
end
if newer then
  return { "incompatible", newer }
elseif st and st.used > 0 then
  return { "page", "0", at.ms, st.thin.claim, remaining(at, st.thin.held), thin_record(st).text, "" }
elseif st then
  return { "page", "0", at.ms }
end
local cursor, fields = unpack(redis.call("HSCAN", KEYS[1], ARGV[1], "MATCH", "c:*", "COUNT", ARGV[2]))
local reply, members, resources = { "page", cursor, at.ms }, {}, {}
for i = 1, #fields, 2 do
  local claim = string.sub(fields[i], 3)
  members[#members + 1], resources[#resources + 1] = "h:" .. claim, "r:" .. claim
end
if members[1] then
  local scores = redis.call("ZMSCORE", KEYS[2], unpack(members))
  resources = redis.call("HMGET", KEYS[1], unpack(resources))
  for i, member in ipairs(members) do
    local deadline, n = scores[i] and scores[i] - score_hold, #reply
    if deadline and deadline > at.ms then
      reply[n + 1], reply[n + 2], reply[n + 3] = string.sub(member, 3), remaining(at, deadline), fields[2 * i]
      reply[n + 4] = resources[i] or ""
    end
  end
end
return reply
