--- @include "state/band"
--- @include "state/record"
--- @include "line/reply"
-- again answers a claim that has asked before: the same answer, unless what it got has ended
-- since. Then it returns nil, the claim's record, and the scores of its hold and of its
-- waiting, nil where the line has none.
local function again(at, st, known, ask)
  local was = record_read(known)
  if not was then
    return { "gone" }
  elseif was.node ~= ask.r.node then
    return { "foreign" }
  end
  local claim = ask.claim
  local scores = redis.call("ZMSCORE", at.line, "h:" .. claim, "a:" .. claim, "q:" .. claim)
  local held, alive = tonumber(scores[1]), tonumber(scores[2])
  if held and held > at.ms then
    return ask.owner and kind_enter and kind_enter(at, st, ask, true)
      or reply_granted(at, st, was, tonumber(was.fence), held, false, st.extra)
  elseif alive and alive - band_alive > at.ms then
    return reply_queued(at, st, was, tonumber(scores[3]) - band_queue, alive - band_alive)
  end
  return nil, was, held, alive
end
