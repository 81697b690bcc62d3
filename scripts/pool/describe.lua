--- @include "state/score"
--- @include "pool/item"
--- @include "line/hold"
-- describe appends to a reply what is known of a resource, whose item may be given as
-- text: its key, a word (free,
-- leased, resting, absent, damaged), the milliseconds that it is leased or rests at the most
-- (-1 = no end), why it rests, the milliseconds until it expires (0 = never), 1 if it
-- is leaving, how many may hold it at once, its own settings ("" = none, see pool/settings), and how many
-- hold it; then for each of those three fields: the
-- claim, the milliseconds left (-1 = no end) and the record. What has passed has
-- passed, swept or not.
local function describe(at, key, reply, text)
  local function left(ends)
    return ends == score_forever and -1 or ends - at.ms
  end
  local i, bad = item_read(at, key, text)
  if i and i.expiry > 0 and i.expiry <= at.ms then
    i.leaving = true
  end
  local holders, furthest = {}, 0
  for _, claim in ipairs(i and i.claims or {}) do
    local deadline = hold_ends(at, nil, claim)
    local record = redis.call("HGET", at.state, "c:" .. claim)
    if deadline and deadline > at.ms and record then
      local n = #holders
      holders[n + 1], holders[n + 2], holders[n + 3] = claim, left(deadline), record
      furthest = math.max(furthest, deadline)
    end
  end
  local n, resting = #reply, i and i.ends > at.ms
  local word, ends = "free", 0
  if holders[1] then
    word, ends = "leased", left(furthest)
  elseif bad then
    word = "damaged"
  elseif not i or i.leaving then
    word = "absent"
  elseif resting then
    word, ends = "resting", left(i.ends)
  end
  reply[n + 1], reply[n + 2], reply[n + 3] = key, word, ends
  reply[n + 4] = i and (resting or i.pend > 0) and i.reason or ""
  reply[n + 5] = i and not i.leaving and i.expiry > 0 and i.expiry - at.ms or 0
  reply[n + 6] = word == "leased" and i.leaving and 1 or 0
  reply[n + 7] = i and i.max or 0
  reply[n + 8] = i and i.own and redis.call("HGET", at.state, "s:" .. key) or ""
  reply[n + 9] = #holders / 3
  for _, field in ipairs(holders) do
    reply[#reply + 1] = field
  end
end
