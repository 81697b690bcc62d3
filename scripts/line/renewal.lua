--- @include "state/score"
--- @include "state/int"
--- @include "state/record"
--- @include "line/forever"
--- @include "line/batch"
local renewal_asks = "^renew (%d+)$" -- the lease that a renewal asks for

-- renew_hold takes an own call of a hold that has a deadline of its own. The first call after a grant
-- confirms it, and starts a fixed lease and the maximum hold, once. After that a hold that renews by
-- itself gets its lease anew; a fixed or a detached one only by the mode renew.
-- "renew <ms>" and "keep <ms>" are renew and beat of a holder that has asked for this lease, 0 =
-- forever: it is the hold's from then on. Forever stays. The deadline that a longer lease has set
-- stays too, until the lease reaches further; but it is never further off than that longer one
-- reaches: then the clock went back.
local function renew_hold(at, st, claim, r, mode, m)
  local word, lease = string.match(mode, "^(%a+) ?(%d*)$")
  local starts, counted = r.phase == "g", forever_count(r)
  local reach = math.max(tonumber(r.number) or 0, r.lease, starts and r.wait or 0)
  if starts then
    r.phase, r.changed = "h", true
    r.limit = r.max > 0 and at.ms + r.max or 0
  end
  if lease ~= "" and r.lease > 0 and lease - r.lease ~= 0 then
    record_terms(r, lease == "0" and "f" or r.kind, tonumber(lease), r.max)
    r.changed = true
  end
  st.forever = st.forever + forever_count(r) - counted
  local anew = starts or word == "renew" or (r.kind == "r" and r.phase ~= "d")
  if mode == "detach" and r.phase ~= "d" then
    r.phase, r.changed = "d", true
  end
  local ends = r.held
  if anew then
    local own = r.lease == 0 and score_forever or at.ms + r.lease
    ends = own
    if lease ~= "" or r.number ~= "" then
      ends = math.max(own, math.min(r.held, at.ms + reach))
    end
    if r.limit > 0 then
      ends = math.min(ends, r.limit)
    end
    local number = ends > own and int(reach) or ""
    r.number, r.changed = number, r.changed or number ~= r.number
  end
  batch_hold(m, claim, r, ends)
end
