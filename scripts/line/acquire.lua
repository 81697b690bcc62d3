--- @include "state/band"
--- @include "state/record"
--- @include "state/least"
--- @include "state/fresh"
--- @include "state/save"
--- @include "line/again"
--- @include "line/clear"
--- @include "line/grant"
--- @include "line/tide"
--- @include "line/reply"
--- @include "wake/tell"
-- acquire answers a claim that asks: it gets what it asks for, waits in line, or gets
-- nothing. known is its record as it was fetched. ask has the claim; r, its record;
-- waits, false where it only tries; priority; owner, where one was given; and what only the
-- kind reads.
local function acquire(at, st, known, ask)
  if at.newer then
    return { "incompatible", at.newer }
  end
  local claim, r, budget = ask.claim, ask.r, { left = 100 - kind_spare }
  local reply, was, held, alive
  if known then
    reply, was, held, alive = again(at, st, known, ask)
  end
  reply = reply or kind_refuse and kind_refuse(st, ask)
  if reply then
    return reply
  end

  local sooner, swept, fields, furthest = nil, 0, nil, nil
  local full = kind_full(at, st, r)
  if was or full then
    sooner, swept = clear(at, st, ask, was, held, budget, full)
  end

  -- Decide. Only a claim that queues moves the last ticket on, so that it does not run
  -- ahead of the clock where nobody waits. A claim that died waiting keeps its own.
  r.ticket = alive and tonumber(was.ticket) or math.max(st.ticket + 1, at.ms)
  if ask.owner and kind_enter then
    reply, fields, furthest = kind_enter(at, st, ask, false, swept, budget.left <= 0)
  end
  local place, ahead, what = nil, nil, nil
  local more = st.met or budget.left <= 0
  if not reply then
    place = kind_place and kind_place(at, ask, r.ticket) or band_place(ask.priority, r.ticket)
    ask.place = place
    budget.left = budget.left + kind_spare
    local before, _ = budget.left, nil
    ahead, _, _, what = kind_next(at, st, budget, ask)
    -- What has expired and was met may not have been all that was in the way.
    more = st.met or budget.left <= kind_spare or not what and budget.left < before
    reply = not what and not ask.waits and kind_refused(st, r, swept, more)
  end
  if reply then
    if fields or budget.left < 100 or st.cap ~= st.was_cap then
      save(at, st, furthest, fields)
      hasten(at, st, sooner)
    end
    tell(at)
    return reply
  end

  -- Write.
  fresh(at, st)
  if kind_fresh then
    kind_fresh(at, st)
  end
  local deadline, extra, field = at.ms + r.wait, nil, nil
  if what then
    if kind_deal then
      extra, field = kind_deal(at, st, claim, what)
    end
    deadline = grant(at, st, claim, r)
    sooner = least(sooner, deadline)
  else
    redis.call("ZADD", at.line, int(band_alive + deadline), "a:" .. claim, int(band_queue + place), "q:" .. claim)
    st.waiting, st.ticket = st.waiting + 1, math.max(st.ticket, r.ticket)
  end
  fields = { "c:" .. claim, record_write(r), field, extra }
  save(at, st, deadline, fields, not what and (ahead ~= claim or st.used > 0))
  hasten(at, st, sooner)
  tell(at)
  if what then
    return reply_granted(at, st, r, st.fence, deadline, more, extra)
  end
  return reply_queued(at, st, r, place, deadline, more, ahead, ahead == claim and deadline)
end
