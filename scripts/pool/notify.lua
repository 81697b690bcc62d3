--- @include "state/score"
--- @include "state/int"
--- @include "state/record"
--- @include "line/place"
--- @include "line/notify"
--- @include "pool/lane"
-- notify_apart has those who wait for one resource hear its moments, once a pause has ended before
-- its time: until then they knew of its end alone. These are the first 50; others hear it by their
-- heartbeats. The hand-off that follows tells the first of each lane.
local function notify_apart(at, st)
  local members = st.pool.parked > 0 and redis.call("ZRANGEBYSCORE", at.line, int(score_lanes), int(score_hold - 1),
    "LIMIT", "0", "50") or {}
  for _, member in ipairs(members) do
    local claim = select(2, string.match(member, place_member))
    local texts = claim and redis.call("HMGET", at.state, "c:" .. claim, "q:" .. claim) or {}
    local ends, key = string.match(texts[2] or "", lane_member)
    local r = key and texts[1] and record_read(texts[1])
    if r then
      lane_touch(at, st, key)
      if ends ~= lane_named and ends ~= "0" then
        notify_node(at, r, ends + 0)
      end
    end
  end
end
