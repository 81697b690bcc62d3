--[[
pool_expire: have a resource leave the pool after a while.
KEYS[1] state (HASH v -> values, c:claim -> record, r:claim -> resource, s:resource -> settings)
KEYS[2] line (ZSET place-claim, h:, t:claim, e:, x:, d:resource, u:binding, - -> score, see state/score)
KEYS[3] items (HASH i:resource -> item)
KEYS[4] free (ZSET resource -> its turn)
KEYS[5] bindings (HASH b:name -> end, resource)
ARGV[1] linger (ms)    ARGV[2] channel prefix    ARGV[3] name
ARGV[4] resource    ARGV[5] after how long (ms)
RETURNS {"expires", flags} | {"absent"} | {"incompatible", format}
REPLAY an expiry is counted from now    COST O(log n) + at most 100 drops and grants
]]
-- flags 2: the run has stopped at its bound, sweep at once.
--- @include "kind/pool"
--- @include "state/score"
--- @include "state/touch"
--- @include "state/save"
--- @include "line/expire"
--- @include "line/handoff"
--- @include "line/deadline"
--- @include "pool/item"
--- @include "pool/settle"
--- @include "wake/publish"
local key = ARGV[4]
local at, st = kind_open(KEYS, ARGV[1], ARGV[2], ARGV[3])
local budget = { left = 100, swept = 0 }

if at.newer then
  return { "incompatible", at.newer }
elseif not st.form then
  return { "absent" }
end
touch(at, st)
local sooner = expire(at, st, budget)
local i = item_read(at, key)
local there = item_stays(at, i)
if there then
  i.expiry = math.min(at.ms + ARGV[5], score_forever - 1)
  settle(at, st, key, i) -- a lane of the resource has to know
end
if there or budget.left < 100 then
  handoff(at, st, budget)
  save(at, st)
  notify(at, st, sooner)
  publish(at)
end
return there and { "expires", (budget.left <= 0 or st.met) and 2 or 0 } or { "absent" }
