--[[
pool_remove: take resources out of the pool; a leased one stays with its holders until it comes back.
KEYS[1] state (HASH v -> values, c:claim -> record, r:claim -> resource)
KEYS[2] line (ZSET place-claim, h:, t:claim, e:, x:, d:resource, u:binding, - -> score, see state/score)
KEYS[3] items (HASH i:resource -> item)
KEYS[4] free (HASH n:, p:resource -> next, previous)
KEYS[5] bindings (HASH b:name -> end, resource)
ARGV[1] linger (ms)    ARGV[2] channel prefix    ARGV[3] name
ARGV[4...] x1: resource
RETURNS {"removed", removed, flags, ...} | {"incompatible", format}
REPLAY what is not in the pool is not counted    COST O(log n) a resource + at most 100 drops and grants
]]
-- flags 2: the run has stopped at its bound, sweep at once. Then follow those that are damaged:
-- they stay so, until pool_mend has taken them out.
--- @include "kind/pool"
--- @include "state/touch"
--- @include "state/save"
--- @include "line/handoff"
--- @include "wake/publish"
--- @include "pool/item"
--- @include "pool/settle"
local at, st = kind_open(KEYS, ARGV[1], ARGV[2], ARGV[3])
local budget = { left = 100, swept = 0 }
local reply = { "removed", 0, 0 }

if at.newer then
  return { "incompatible", at.newer }
elseif not st.form then
  return reply
end
touch(at, st) -- a full server must be able to shed
for n = 4, #ARGV do
  local i, bad = item_read(at, ARGV[n])
  if bad then
    reply[#reply + 1] = ARGV[n]
  elseif i and not i.leaving then
    i.leaving, reply[2] = true, reply[2] + 1
    settle(at, st, ARGV[n], i)
  end
end
handoff(at, st, budget)
if reply[2] > 0 then
  save(at, st)
end
publish(at)
reply[3] = (budget.left <= 0 or st.met) and 2 or 0
return reply
