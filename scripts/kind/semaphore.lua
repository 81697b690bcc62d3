--- @include "state/open"
-- What only semaphores are: a capacity, of which each claim takes its weight. See scripts.go for what the line
-- asks of a kind. What a kind does not define is false.
local kind_open = open
local kind_spare = 0
local kind_weighs = true
local kind_thin = true

-- kind_heavy: a claim that weighs more than the capacity will never fit.
local function kind_heavy(st, r)
  return r.weight > st.cap
end

-- kind_refuse: the stored capacity rules, unless the caller insists on its own.
local function kind_refuse(_, st, ask)
  if st.cap == 0 or ask.policy == "override" then
    st.cap = ask.capacity
  elseif st.cap ~= ask.capacity and ask.policy == "strict" then
    return { "differs", st.used, st.waiting, 0, 0, st.cap }
  end
  if ask.r.weight > st.cap then
    return { "too_heavy", st.used, st.waiting, 0, 0, st.cap }
  end
end

-- kind_full: what has expired may be in the way.
local function kind_full(_, st, r)
  return st.waiting > 0 or st.used + r.weight > st.cap
end

--- @include "line/head"
-- kind_next: the first in line, if its weight fits.
local function kind_next(at, st, budget, arrival)
  if not arrival and st.used >= st.cap and st.cap == st.was_cap then
    return nil -- full, so there is no need to look who is next
  end
  local claim, r = head(at, st, budget, arrival)
  return claim, r, r and r.weight <= st.cap - st.used
end

local kind_arrive = kind_next

-- kind_refused: there is room, but others come first; or there is none.
local function kind_refused(_, st, ask, swept, more)
  return { st.used + ask.r.weight <= st.cap and "ahead" or "full", st.used, st.waiting, swept, more and 2 or 0, st.cap }
end

--- @include "line/renewal"
-- kind_renew: each hold has its own deadline.
local kind_renew = renew_hold
