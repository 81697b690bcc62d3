--[[
pool_rest: have a resource rest from now on, or from its next return on where it is leased; or end its rest.
KEYS[1] state (HASH field -> number, c:claim -> record, r:claim -> resource)
KEYS[2] line (ZSET h:, a:, q:, t:claim, e:, x:, d:resource, u:binding -> score, see lib/bands)
KEYS[3] items (HASH i:resource -> item)
KEYS[4] free (HASH n:, p:resource -> next, previous)
KEYS[5] bindings (HASH b:name -> end, resource)
ARGV[1] resource    ARGV[2] for how long (ms, 0 = end the rest)    ARGV[3] why
ARGV[4] linger (ms)    ARGV[5] channel prefix    ARGV[6] name
RETURNS {"rested", more} | {"absent"} | {"incompatible", format}
REPLAY a rest is counted from now    COST O(log n) + at most 100 drops and grants
]]
--- @include "lib/pool"
--- @include "lib/bands"
--- @include "lib/item"
--- @include "lib/settle"
--- @include "lib/touch"
--- @include "lib/reclaim"
--- @include "lib/give"
--- @include "lib/handoff"
--- @include "lib/hasten"
--- @include "lib/poolsave"
--- @include "lib/more"
--- @include "lib/tell"
local key, lasts, forever = ARGV[1], tonumber(ARGV[2]), bands().forever
local at, st, _, newer = pool(KEYS, ARGV[4], ARGV[5], ARGV[6])
local out, budget = {}, 100

if newer then
  return { "incompatible", newer }
end
local spent = 0
if st.fmt > 0 then
  touch(at, st)
  spent = reclaim(at, st, budget)
end
local i = st.fmt > 0 and item(at, key)
if not i or i.leaving or i.expiry > 0 and i.expiry <= at.ms then
  if spent > 0 then
    handoff(at, st, budget - spent, out, give(at, st))
    poolsave(at, st)
    hasten(at, st, at.sooner, out)
    tell(out)
  end
  return { "absent" }
end
i.pend = 0
if lasts == 0 then
  i.ends, i.reason = 0, ""
elseif i.was.leased then
  i.pend, i.reason = lasts, ARGV[3]
else
  i.ends, i.reason = math.min(at.ms + lasts, forever), ARGV[3]
end
settle(at, st, key, i)
spent = spent + handoff(at, st, budget - spent, out, give(at, st))
poolsave(at, st)
hasten(at, st, i.ends > 0 and math.min(at.sooner or i.ends, i.ends) or at.sooner, out)
tell(out)
return { "rested", more(at, spent >= budget) }
