--- @include "state/score"
--- @include "state/int"
--- @include "pool/open"
--- @include "pool/holding"
--- @include "pool/due"
--- @include "pool/pick"
-- What only pools are: a claim gets one of the resources. See scripts.go for what the line
-- asks of a kind. What a kind does not need is false.
local kind_enter = false
local kind_place = false
local kind_remove = false
local kind_refuse = false
local kind_heavy = false
local kind_hold = false
local kind_deadlines = false
local kind_left = false
local kind_weighs = false
local kind_thin = false
local kind_spare = 20 -- of the drops and grants of a run, kept for pick
local kind_open = pool_open
local kind_fresh = pool_fresh
local kind_save = pool_save
local kind_extras = holding_all
local kind_deal = holding_begin
local kind_leave = holding_end
local kind_expire = holding_expire
local kind_due = due

-- kind_moment: the first end of a rest.
local function kind_moment(at)
  local rest = redis.call("ZRANGEBYSCORE", at.line, int(score_rest), int(score_rest + score_forever - 1), "WITHSCORES",
    "LIMIT", "0", "1")
  return rest[2] and tonumber(rest[2]) - score_rest
end

--- @include "line/deadline"
-- kind_full: what has expired may be in the way.
local function kind_full(at, st)
  local p = st.pool
  local due_now = p.resources > p.free and (soonest(at, st) or at.ms + 1) <= at.ms
  return st.form and (due_now or st.waiting > 0 or p.free == 0)
end

--- @include "line/head"
-- kind_next: the first in line, if a resource is free that it may have.
local function kind_next(at, st, budget, arrival)
  local claim, r = head(at, st, budget, arrival)
  if not r or st.pool.free <= 0 then
    return claim, r
  end
  return claim, r, pick(at, st, wants_read(r.terms), budget)
end

-- kind_refused: something is free, but others come first; or nothing is.
local function kind_refused(st, _, swept, more)
  local ahead = st.pool.free > 0 and st.waiting > 0
  return { ahead and "ahead" or "full", st.used, st.waiting, swept, more and 2 or 0, st.pool.resources }
end

--- @include "line/renewal"
-- kind_renew: each hold has its own deadline.
local kind_renew = renew_hold

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
  st.met = #untold >= 200 -- the others are told
  return untold[1] ~= nil
end
