--- @include "state/score"
--- @include "state/int"
--- @include "state/least"
--- @include "pool/open"
--- @include "pool/holding"
--- @include "pool/apart"
--- @include "pool/target"
--- @include "pool/agree"
-- What only pools are: a claim gets one of the resources. See scripts.go for what the line
-- asks of a kind. What a kind does not define is false.
local kind_spare = 20 -- of the drops and grants of a run, kept for pick
local kind_open = pool_open
local kind_fresh = pool_fresh
local kind_extras = holding_all
local kind_deal = holding_begin
local kind_leave = holding_end
local kind_expire = holding_expire
local kind_place = target_place
local kind_stand = apart_stand
local kind_stands = apart_stands
local kind_alarm = apart_alarm
local kind_asks = apart_asks
local kind_rejoin = apart_rejoin

-- kind_refused: something is free, but others come first; or nothing is. A claim that would wait
-- for one resource is told what that one does.
local function kind_refused(at, st, ask, swept, more)
  local word = st.pool.free > 0 and st.waiting > 0 and "ahead" or "full"
  local i = ask.target and item_read(at, ask.target)
  if i then
    local held = #i.claims >= i.max or ask.wants.alone and #i.claims > 0
    word = held and "held" or i.ends > 0 and "resting" or "ahead"
  end
  return { word, st.used, st.waiting, swept, more and 2 or 0, st.pool.resources }
end

-- kind_refuse: the settings are others than those that its process insists on, or it asks for more than
-- they allow; or the one resource that it wants is not in the pool; or it only tries, and nothing ever was.
local function kind_refuse(at, st, ask)
  local reply = agree_refuse(st, ask) or target_refuse(at, st, ask)
  if not reply and not st.form and not ask.waits and not ask.target then
    return kind_refused(at, st, ask, 0, false)
  end
  return reply
end

-- kind_vacate: what a claim that waited for one resource had beside its place.
local kind_vacate = lane_leave

--- @include "line/first"
--- @include "pool/lanes"
--- @include "line/earliest"
--- @include "pool/expire"
local kind_due = pool_due
local kind_pending = pool_pending

--- @include "pool/mark"
-- kind_save: the counts, once the lanes that are still to be looked at are noted.
local function kind_save(at, st)
  if st.touched then
    lanes_keep(at, st)
  end
  return pool_save(st)
end

-- moment_first is the first end in a range of the line (ms), nil for none.
local function moment_first(at, from)
  local found = redis.call("ZRANGEBYSCORE", at.line, int(from), int(from + score_forever - 1), "WITHSCORES",
    "LIMIT", "0", "1")
  return found[2] and tonumber(found[2]) - from or nil
end

-- kind_moment: the first end of a rest, and of a wait for one resource. Where nobody stands in
-- line, other rests concern nobody.
local function kind_moment(at, st)
  local rest = in_line(st) > 0 and moment_first(at, score_rest) or nil
  if st.pool.parked <= 0 then
    return rest
  end
  return least(rest, least(moment_first(at, score_moment), moment_first(at, score_patience)))
end

-- kind_full: what has expired may be in the way; or what this run has taken back, of those who wait for it.
local function kind_full(at, st)
  local p = st.pool
  if not st.form or in_line(st) > 0 or p.free == 0 or st.touched then
    return st.form
  end
  local hold = earliest(at, st)
  local rest = p.resources > p.free and moment_first(at, score_rest)
  local over = p.resources > p.free and (hold > 0 and hold <= at.ms or rest and rest <= at.ms)
  return over or lanes_pending(at, st, score_patience) or lanes_pending(at, st, score_moment)
end

--- @include "pool/next"
-- kind_next: who stands ahead, and what it gets.
local kind_next = pool_next
local kind_arrive = next_arrival

--- @include "pool/renewal"
-- kind_renew: each hold has its own deadline, and no longer lease than the pool allows.
local kind_renew = renew_leased

-- kind_setting: how many resources there are.
local function kind_setting(st)
  return st.pool.resources
end

-- kind_tell: the resources that were found damaged and not reported before, up to 100.
local function kind_tell(at, st, reply)
  local untold = redis.call("ZRANGEBYSCORE", at.line, int(score_damage), int(score_damage + 1), "WITHSCORES",
    "LIMIT", "0", "100")
  for n = 1, #untold, 2 do
    redis.call("ZADD", at.line, int(untold[n + 1] + 2), untold[n])
    reply[#reply + 1] = string.sub(untold[n], 3)
  end
  st.met = st.met or #untold >= 200
  return untold[1] ~= nil
end
