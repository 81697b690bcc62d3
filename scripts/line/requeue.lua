--- @include "state/record"
--- @include "state/touch"
--- @include "state/save"
--- @include "line/place"
--- @include "line/expire"
--- @include "line/handoff"
--- @include "line/reply"
--- @include "wake/publish"
-- requeue sends a waiting claim that has a ticket to the end of the line. The reply is that
-- of acquire to a claim that queues, or
--   not_waiting: what became of it is for its heartbeat to say
local function requeue(at, st, known, claim, node, ticket, own_lane)
  if at.newer then
    return { "incompatible", at.newer }
  end
  local r = known and record_read(known)
  local lane = r and r.phase == "w" and r.node == node and r.alive > at.ms
    and tonumber(redis.call("ZSCORE", at.line, r.place .. place_mark .. claim))
  if not lane then
    return { "not_waiting" }
  end
  touch(at, st)
  r.alive = at.ms + r.wait
  if tonumber(r.ticket) == tonumber(ticket) then
    redis.call("ZREM", at.line, r.place .. place_mark .. claim)
    st.ticket, lane = math.max(st.ticket + 1, at.ms), own_lane
    r.ticket = string.format(place_ticket, st.ticket)
    r.place = r.ticket
    redis.call("ZADD", at.line, lane, r.place .. place_mark .. claim)
  end
  redis.call("HSET", at.state, "c:" .. claim, record_write(r)) -- before the hand-off, which may grant it
  local budget = { left = 100, swept = 0 }
  expire(at, st, budget)
  handoff(at, st, budget, tonumber(r.ticket) ~= tonumber(ticket))
  save(at, st, r.alive)
  local reply = reply_queued(at, st, claim, r, lane, budget.left <= 0)
  publish(at)
  return reply
end
