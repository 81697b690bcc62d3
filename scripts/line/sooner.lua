--- @include "line/deadline"
--- @include "line/place"
--- @include "state/score"
--- @include "state/int"
--- @include "state/record"
-- sooner tells those who wait behind the first one, once a pause ends sooner than they know: the first
-- one, whose part it is else, may be dead. These are 50; others hear it by their heartbeats.
local function sooner(at, st)
  local next_at, head, known = soonest(at, st), first_waiter(at)
  if known and st.pause == 0 then
    next_at = math.min(next_at or math.huge, (string.match(known, record_lives) or 0) + 0)
  end
  local last = st.pause > 0 and score_hold - 1 or score_last_lane -- see pause about those behind that
  local members = next_at and redis.call("ZRANGEBYSCORE", at.line, "0", int(last), "LIMIT", "0", "50") or {}
  local told = {}
  for _, member in ipairs(members) do
    local claim = select(2, string.match(member, place_member))
    local text = claim and claim ~= head and redis.call("HGET", at.state, "c:" .. claim)
    local r = text and record_read(text)
    if r and not told[r.node] then
      told[r.node] = notify_node(at, r, next_at)
    end
  end
end
