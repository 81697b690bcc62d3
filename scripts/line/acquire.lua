--- @include "state/record"
--- @include "line/thin"
--- @include "state/fatten"
--- @include "state/save"
--- @include "state/least"
--- @include "line/place"
--- @include "line/replay"
--- @include "line/clear"
--- @include "line/grant"
--- @include "line/deadline"
--- @include "line/reply"
--- @include "wake/publish"
-- acquire answers a claim that asks: it gets what it asks for, waits in line, or gets
-- nothing. known is its record as it was fetched. ask has the claim; r, its record;
-- waits, false where it only tries; its lane; owner, where one was given; and what only the
-- kind reads.
local function acquire(at, st, known, ask)
  if at.newer then
    return { "incompatible", at.newer }
  end
  local claim, r, budget = ask.claim, ask.r, { left = 100 - kind_spare, swept = 0 }
  local reply, was, held
  if known then
    reply, was, held = replay(at, st, known, ask)
  end
  reply = reply or kind_refuse and kind_refuse(at, st, ask)
  if reply then
    return reply
  end

  local full, sooner, fields, furthest = kind_full(at, st, r), nil, nil, nil
  if was or full then
    sooner = clear(at, st, ask, was, held, budget, full)
  end

  -- Decide. Only a claim that queues moves the last ticket on, so that it does not run
  -- ahead of the clock where nobody waits. A claim that died waiting keeps its own.
  r.ticket = was and was.phase == "w" and was.ticket or string.format(place_ticket, math.max(st.ticket + 1, at.ms))
  if ask.owner and kind_enter then
    reply, fields, furthest = kind_enter(at, st, ask, false, budget.swept, budget.left <= 0)
  end
  local what, more = nil, st.met or budget.left <= 0
  if not reply then
    ask.place = r.ticket
    if kind_place then
      kind_place(at, ask)
    end
    budget.left = budget.left + kind_spare
    local before, _ = budget.left, nil
    if st.pause == 0 then
      _, _, what = kind_arrive(at, st, budget, ask)
    end
    -- What has expired and was met may not have been all that was in the way.
    if st.met or budget.left <= kind_spare or not what and budget.left < before then
      more = true
    end
    if not what and not ask.waits then
      reply = st.pause > 0 and reply_paused(at, st, budget.swept, more) or kind_refused(at, st, ask, budget.swept, more)
    end
  end
  if reply then
    if fields or budget.left < 100 or st.touched or st.cap ~= st.was_cap then
      fatten(at, st, true)
      save(at, st, furthest, fields)
      notify(at, st, sooner)
    end
    publish(at)
    return reply
  end

  -- Write.
  if what and kind_thin and thin_fits(at, st, claim, r) then
    local ends = thin_grant(at, st, claim, r)
    return reply_granted(at, st, r, st.fence, ends, more)
  end
  fatten(at, st, true)
  local deadline, extra, field = at.ms + r.wait, nil, nil
  if what then
    deadline = grant(at, st, claim, r)
    if kind_deal then
      extra, field = kind_deal(at, st, claim, what)
    end
    sooner = least(sooner, deadline)
  else
    r.place, r.alive = ask.place, deadline
    if ask.apart then
      kind_stand(at, st, claim, r, ask.lane, ask.apart)
    else
      redis.call("ZADD", at.line, ask.lane, r.place .. place_mark .. claim)
    end
    st.waiting, st.ticket = st.waiting + 1, math.max(st.ticket, tonumber(r.ticket))
  end
  save(at, st, deadline, { "c:" .. claim, record_write(r), field, extra })
  notify(at, st, sooner)
  publish(at)
  if what then
    return reply_granted(at, st, r, tonumber(r.fence), deadline, more, extra)
  end
  return reply_queued(at, st, claim, r, ask.lane, more)
end
