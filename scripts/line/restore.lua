--- @include "state/record"
--- @include "state/thin"
--- @include "state/fatten"
--- @include "state/least"
--- @include "state/save"
--- @include "line/first"
--- @include "line/hold"
--- @include "line/leave"
--- @include "line/place"
--- @include "line/expire"
--- @include "line/handoff"
--- @include "line/deadline"
--- @include "line/reply"
--- @include "wake/publish"
-- restore_claim puts a claim that waited back where it stood. It returns what the claim is now:
-- waiting, held, gone, released, taken, too_heavy or absent; the end of its wait lease (ms) if it waits now; the
-- earliest deadline that its leaving has set (ms), nil for none; whether the first in line has left; and the record
-- of a claim that waits.
local function restore_claim(at, st, node, claim, standing, text)
  local r, hold = record_read(text), st.thin
  local known = hold and hold.claim == claim and thin_record(st).text
  if st.form == "fat" then
    known = redis.call("HGET", at.state, "c:" .. claim)
  end
  local sooner, head_left = nil, false
  if known then
    local was = record_read(known)
    if not was then
      return string.match(known or "", record_word) or ""
    elseif was.node ~= node then
      return "taken"
    end
    local held = hold_ends(at, st, claim)
    if held and held > at.ms then
      return "held"
    elseif not held and was.alive > at.ms
      and redis.call("ZSCORE", at.line, was.place .. place_mark .. claim) then
      return "waiting", nil, nil, nil, was
    end
    if st.form == "fat" then
      local _
      if not held and first(at.line) == claim then
        head_left = true
      end
      _, _, sooner = leave(at, st, claim, was, held)
    end
  end
  if kind_heavy and kind_heavy(st, r) then
    return "too_heavy", nil, sooner, head_left
  end
  local word
  local lane, place, apart = string.match(standing, place_telling)
  if apart ~= "" and kind_rejoin then
    word, apart = kind_rejoin(at, st, apart)
    if word then
      return word, nil, sooner, head_left
    end
  end
  fatten(at, st, true)
  r.phase, r.place, r.alive = "w", place, at.ms + r.wait
  if apart ~= "" then
    kind_stand(at, st, claim, r, lane, apart)
  else
    redis.call("ZADD", at.line, lane, place .. place_mark .. claim)
  end
  redis.call("HSET", at.state, "c:" .. claim, record_write(r))
  st.waiting, st.ticket = st.waiting + 1, math.max(st.ticket, tonumber(r.ticket))
  return "waiting", r.alive, sooner, head_left, r
end

-- restore has a node's waiting claims that the server no longer knows stand where they
-- stood: claim, its lane and place, record, ... cap is the capacity where none is stored. The reply is
-- status, next_ms, flags, setting, held, waiting, see line/reply; and then a word for each claim.
local function restore(at, st, node, cap, claims)
  if at.newer then
    return { "incompatible", at.newer }
  end
  st.cap = st.cap == 0 and cap or st.cap
  local waiting, used = st.waiting, st.used
  local reply = { "restored", -1, 0, 0, 0, 0 }
  local budget, furthest, sooner, head_left, waits = { left = 100, swept = 0 }, nil, nil, false, {}
  for i = 1, #claims, 3 do
    local word, ends, nearer, first_left, r = restore_claim(at, st, node, claims[i], claims[i + 1], claims[i + 2])
    waits[#waits + 1] = r and { claim = claims[i], r = r }
    reply[#reply + 1], sooner, head_left = word, least(sooner, nearer), head_left or first_left
    furthest = ends and math.max(furthest or 0, ends) or furthest
  end
  if st.form == "fat" then
    sooner = least(sooner, expire(at, st, budget))
    handoff(at, st, budget, head_left)
    if furthest or budget.left < 100 or st.waiting ~= waiting or st.used ~= used then -- a full server lets a claim end
      save(at, st, furthest)
      notify(at, st, sooner)
    end
  end
  reply_next(at, st, node, budget, reply, waits)
  reply[5], reply[6] = st.used, st.waiting
  publish(at)
  return reply
end
