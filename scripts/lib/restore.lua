--- @include "lib/bands"
--- @include "lib/record"
-- restore puts a claim that waited back where it stood, and says what it is now:
-- waiting, held, gone, released, taken or too_heavy, and until when it is waited for
-- (ms). drop(claim, record, deadline) takes away what is left of one whose time has
-- passed.
local function restore(at, st, node, claim, standing, text, drop)
  local r, band = record(text), bands()
  local known = redis.call("HGET", at.state, "c:" .. claim)
  if known then
    local was = record(known)
    if not was then
      return string.sub(known, 2), 0
    elseif was.node ~= node then
      return "taken", 0
    end
    local scores = redis.call("ZMSCORE", at.line, "h:" .. claim, "a:" .. claim)
    local held, alive = tonumber(scores[1]), tonumber(scores[2])
    if held and held > at.ms then
      return "held", 0
    elseif alive and alive - band.alive > at.ms then
      return "waiting", 0
    end
    drop(claim, was, held)
  end
  if r.weight > st.cap then
    return "too_heavy", 0
  end
  redis.call("ZADD", at.line, band.alive + at.ms + r.wait, "a:" .. claim, band.queue + standing, "q:" .. claim)
  redis.call("HSET", at.state, "c:" .. claim, text)
  st.waiting = st.waiting + 1
  st.ticket = math.max(st.ticket, tonumber(r.ticket))
  return "waiting", at.ms + r.wait
end
