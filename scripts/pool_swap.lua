--[[
pool_swap: a holder gives its resource back and gets the next one, in one step.
KEYS[1] state (HASH v -> values, c:claim -> record, r:claim -> resource, s:resource -> settings)
KEYS[2] line (ZSET place-claim, h:, t:claim, e:, x:, d:resource, u:binding, - -> score, see state/score)
KEYS[3] items (HASH i:resource -> item)
KEYS[4] free (ZSET resource -> its turn)
KEYS[5] bindings (HASH b:name -> end, resource)
ARGV[1] linger (ms)    ARGV[2] channel prefix    ARGV[3] name    ARGV[4] node
ARGV[5] claim id    ARGV[6] fence that it has
ARGV[7] rest of that (ms, 0 = none)    ARGV[8] why it rests
ARGV[9] when that leaves the pool (ms, 0 = as before)
RETURNS {"swapped", ticket, fence, left_ms, flags, setting, resource, stays}
  | {"full", held, waiting, swept, flags, setting} | {"ahead", held, waiting, swept, flags, setting}
  | {"paused", held, waiting, swept, flags, setting, extra, left_ms, since, reason}
  | {"not_held", word} | {"taken"} | {"incompatible", format}
REPLAY a claim that has another fence already is told what it has    COST O(log n) + at most 100 drops and grants
]]
-- The fields are those of line/reply; stays is 1 where the old resource is still in the pool.
--- @include "kind/pool"
--- @include "state/int"
--- @include "state/record"
--- @include "state/save"
--- @include "line/expire"
--- @include "line/handoff"
--- @include "line/hold"
--- @include "line/remaining"
--- @include "line/deadline"
--- @include "line/reply"
--- @include "pool/wants"
--- @include "pool/pick"
--- @include "pool/take"
--- @include "pool/release"
--- @include "wake/publish"
local claim = ARGV[5]
local at, st, known = kind_open(KEYS, ARGV[1], ARGV[2], ARGV[3], claim)
local old, budget = st.extra, { left = 100 - kind_spare, swept = 0 }

if at.newer then
  return { "incompatible", at.newer }
end
local r = known and record_read(known)
local deadline = r and hold_ends(at, st, claim)
if not deadline or deadline <= at.ms then
  return { "not_held", string.match(known or "", record_word) or "" }
elseif r.node ~= ARGV[4] then
  return { "taken" }
end
local function swapped(resource, flags, stays)
  return { "swapped", tonumber(r.ticket), tonumber(r.fence), remaining(at, deadline), flags, st.pool.resources, resource,
    stays }
end
if r.fence - ARGV[6] ~= 0 then
  return swapped(old, 0, 1)
elseif st.pause > 0 then
  return reply_paused(at, st, 0, false)
end

local sooner = expire(at, st, budget)
handoff(at, st, budget)
budget.left = budget.left + kind_spare
local w, chosen = wants_read(r.terms), nil
w.other = old
if in_line(st) == 0 and not st.halted then
  w.resource = nil
  chosen = pick(at, st, w, budget)
  if chosen and lane_of(at, st, chosen.key) then
    lane_touch(at, st, chosen.key)
    chosen, st.met = nil, true -- an earlier run has stopped at its bound: who waits for that comes first
  end
end
local more = budget.left <= kind_spare
if not chosen then
  if budget.left < 100 or st.touched then
    save(at, st)
    notify(at, st, sooner)
  end
  publish(at)
  local word = in_line(st) > 0 and "ahead" or "full"
  return { word, st.used, st.waiting, budget.swept, (more or st.met) and 2 or 0, st.pool.resources }
end
st.fence = math.max(st.fence + 1, at.us)
r.fence = string.format(values_fence, st.fence)
take(at, st, claim, chosen)
local kept = release_resource(at, st, claim, old, w, at.ms, tonumber(ARGV[7]), ARGV[8], tonumber(ARGV[9]))
-- Nobody stands in line: of a rest only those have to know who wait for that resource.
handoff(at, st, budget)
save(at, st, nil, { "c:" .. claim, record_write(r), "r:" .. claim, chosen.key })
publish(at)
return swapped(chosen.key, (more or st.met) and 2 or 0, kept and 1 or 0)
