--- @include "state/band"
--- @include "state/record"
--- @include "state/fresh"
--- @include "state/least"
--- @include "state/save"
--- @include "line/first"
--- @include "line/leave"
--- @include "line/expire"
--- @include "line/handoff"
--- @include "line/tide"
--- @include "line/reply"
--- @include "wake/tell"
-- restore_claim puts a claim that waited back where it stood, and says what it is now:
-- waiting, held, gone, released, taken or too_heavy; and until when it is waited for, the
-- earliest deadline that its leaving has set (ms), nil for none, and whether it was the first
-- in line.
local function restore_claim(at, st, node, claim, place, text)
  local r, known = record_read(text), redis.call("HGET", at.state, "c:" .. claim)
  local sooner, parted = nil, false
  if known then
    local was = record_read(known)
    if not was then
      return string.match(known or "", record_word) or ""
    elseif was.node ~= node then
      return "taken"
    end
    local scores = redis.call("ZMSCORE", at.line, "h:" .. claim, "a:" .. claim)
    local held, alive = tonumber(scores[1]), tonumber(scores[2])
    if held and held > at.ms then
      return "held"
    elseif alive and alive - band_alive > at.ms then
      return "waiting"
    end
    local _
    parted = not held and first(at.line) == claim
    _, _, sooner = leave(at, st, claim, was, held)
  end
  if kind_heavy and kind_heavy(st, r) then
    return "too_heavy", nil, sooner, parted
  end
  redis.call("ZADD", at.line, band_alive + at.ms + r.wait, "a:" .. claim, band_queue + place, "q:" .. claim)
  redis.call("HSET", at.state, "c:" .. claim, text)
  st.waiting, st.ticket = st.waiting + 1, math.max(st.ticket, tonumber(r.ticket))
  return "waiting", at.ms + r.wait, sooner, parted
end

-- restore has a node's waiting claims that the server no longer knows stand where they
-- stood: claim, place, record, ... cap is the capacity where none is stored. The reply is
--   status, next_ms, flags, setting, held, waiting
-- see line/reply, and then a word for each claim.
local function restore(at, st, node, cap, claims)
  if at.newer then
    return { "incompatible", at.newer }
  end
  fresh(at, st)
  if kind_fresh then
    kind_fresh(at, st)
  end
  if st.cap == 0 then
    st.cap = cap
  end
  local reply = { "restored", -1, 0, 0, 0, 0 }
  local budget, furthest, sooner, parted = { left = 100 }, nil, nil, false
  for i = 1, #claims, 3 do
    local word, ends, nearer, first_left = restore_claim(at, st, node, claims[i], tonumber(claims[i + 1]), claims[i + 2])
    reply[#reply + 1], sooner, parted = word, least(sooner, nearer), parted or first_left
    furthest = ends and math.max(furthest or 0, ends) or furthest
  end
  local dead, ends = expire(at, st, budget)
  handoff(at, st, budget, parted or dead)
  save(at, st, furthest)
  hasten(at, st, least(sooner, ends))
  reply_tide(at, st, node, budget, reply)
  reply[5], reply[6] = st.used, st.waiting
  tell(at)
  return reply
end
