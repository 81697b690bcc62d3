--[[
pool_swap: a holder gives its resource back and gets the next one, in one step.
KEYS[1] state (HASH field -> number, c:claim -> record, r:claim -> resource)
KEYS[2] line (ZSET h:, a:, q:, t:claim, e:, x:, d:resource, u:binding -> score, see lib/bands)
KEYS[3] items (HASH i:resource -> item)
KEYS[4] free (HASH n:, p:resource -> next, previous)
KEYS[5] bindings (HASH b:name -> end, resource)
ARGV[1] claim id    ARGV[2] node    ARGV[3] fence that it has
ARGV[4] rest of that (ms, 0 = none)    ARGV[5] why it rests
ARGV[6] linger (ms)    ARGV[7] channel prefix    ARGV[8] name
RETURNS {"swapped", fence, resource, resources, more, stays} | {"full", resources, held, waiting, swept, more}
  | {"ahead", resources, held, waiting, swept, more} | {"not_held", word} | {"taken"} | {"incompatible", format}
REPLAY a claim that has another fence already is told what it has    COST O(log n) + at most 100 drops and grants
]]
--- @include "lib/pool"
--- @include "lib/int"
--- @include "lib/record"
--- @include "lib/pack"
--- @include "lib/wants"
--- @include "lib/reclaim"
--- @include "lib/give"
--- @include "lib/handoff"
--- @include "lib/pick"
--- @include "lib/take"
--- @include "lib/giveback"
--- @include "lib/hasten"
--- @include "lib/poolsave"
--- @include "lib/more"
--- @include "lib/tell"
local claim, node = ARGV[1], ARGV[2]
local at, st, known, newer, old = pool(KEYS, ARGV[6], ARGV[7], ARGV[8], claim)
local out, budget, sweeps = {}, 100, 80 -- what is left is for pick

if newer then
  return { "incompatible", newer }
end
local r = known and record(known)
local deadline = r and tonumber(redis.call("ZSCORE", at.line, "h:" .. claim))
if not deadline or deadline <= at.ms then
  return { "not_held", known and not r and string.sub(known, 2) or "" }
elseif r.node ~= node then
  return { "taken" }
elseif r.fence ~= ARGV[3] then
  return { "swapped", tonumber(r.fence), old or "", st.pool.resources, 0, 1 }
end

local w = wants(r.tail)
w.other = old
local swept = reclaim(at, st, sweeps)
local spent = swept + handoff(at, st, sweeps - swept, out, give(at, st))
local key, i, drops = nil, nil, 0
if st.waiting == 0 then
  key, i, drops = pick(at, st, w, budget - spent)
end
spent = spent + drops
local left = more(at, spent >= sweeps)
if not key then
  if spent > 0 then
    poolsave(at, st)
    hasten(at, st, at.sooner, out)
  end
  tell(out)
  return { st.waiting > 0 and "ahead" or "full", st.pool.resources, st.used, st.waiting, swept, left }
end
take(at, st, claim, w, key, i)
local rest = tonumber(ARGV[4])
local ends = math.max(w.cooldown > 0 and at.ms + w.cooldown or 0, rest > 0 and at.ms + rest or 0)
local kept = giveback(at, st, claim, old, w, ends, rest >= w.cooldown and ARGV[5] or "")
st.fence = math.max(st.fence + 1, at.us)
r.fence = int(st.fence)
poolsave(at, st, nil, "c:" .. claim, pack(r), "r:" .. claim, key) -- nobody waits: nobody has to know of a rest
tell(out)
return { "swapped", st.fence, key, st.pool.resources, more(at, left == 1), kept and 1 or 0 }
