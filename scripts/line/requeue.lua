--- @include "state/band"
--- @include "state/record"
--- @include "state/touch"
--- @include "state/save"
--- @include "line/expire"
--- @include "line/handoff"
--- @include "line/reply"
--- @include "wake/tell"
-- requeue sends a waiting claim that has a ticket to the end of the line. The reply is that
-- of acquire to a claim that queues, or
--   not_waiting: what became of it is for its heartbeat to say
local function requeue(at, st, known, claim, node, ticket, priority)
  if at.newer then
    return { "incompatible", at.newer }
  end
  local r = known and record_read(known)
  local scores = redis.call("ZMSCORE", at.line, "a:" .. claim, "q:" .. claim)
  local alive, place = tonumber(scores[1]), tonumber(scores[2])
  if not r or r.node ~= node or not alive or not place or alive - band_alive <= at.ms then
    return { "not_waiting" }
  end
  place, alive = place - band_queue, at.ms + r.wait
  if r.ticket == ticket then
    r.ticket = math.max(st.ticket + 1, at.ms)
    st.ticket, place = r.ticket, band_place(priority, r.ticket)
  end
  touch(at, st)
  redis.call("ZADD", at.line, band_alive + alive, "a:" .. claim, band_queue + place, "q:" .. claim)
  redis.call("HSET", at.state, "c:" .. claim, record_write(r)) -- before the hand-off, which may grant it
  local budget = { left = 100 }
  handoff(at, st, budget, expire(at, st, budget))
  save(at, st, alive)
  local reply = reply_queued(at, st, r, place, alive, budget.left <= 0)
  tell(at)
  return reply
end
