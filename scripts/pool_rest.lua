--[[
pool_rest: have a resource rest from now on, or from its next return on where it is leased, or end its rest.
A longer rest stays unless ARGV says otherwise.
KEYS[1] state (HASH v -> values, c:claim -> record, r:claim -> resource, s:resource -> settings)
KEYS[2] line (ZSET place-claim, h:, t:claim, e:, x:, d:resource, u:binding, - -> score, see state/score)
KEYS[3] items (HASH i:resource -> item)
KEYS[4] free (ZSET resource -> its turn)
KEYS[5] bindings (HASH b:name -> end, resource)
ARGV[1] linger (ms)    ARGV[2] channel prefix    ARGV[3] name
ARGV[4] resource    ARGV[5] for how long (ms, 0 = end the rest)    ARGV[6] why
ARGV[7] the revision that the caller has seen    ARGV[8] id of the call    ARGV[9] "1" = also where it rests longer
RETURNS {"rested", flags} | {"absent"} | {"stale", revision, resource, what} | {"incompatible", format}
REPLAY the call that changed it last is told the same    COST O(log n) + at most 100 drops and grants
]]
-- flags 1: it rests for longer, and goes on; 2: the run has stopped at its bound, sweep at once.
--- @include "kind/pool"
--- @include "state/fetch"
--- @include "state/score"
--- @include "state/least"
--- @include "state/touch"
--- @include "state/save"
--- @include "state/revision"
--- @include "line/expire"
--- @include "line/handoff"
--- @include "line/deadline"
--- @include "pool/item"
--- @include "pool/settle"
--- @include "wake/publish"
local key, lasts, exactly = ARGV[4], tonumber(ARGV[5]), ARGV[9] == "1"
local time, kept, top = fetch(KEYS, nil, "pool", "r:", "o:" .. key)
local at, st = kind_open(KEYS, ARGV[1], ARGV[2], ARGV[3], nil, time, kept, top)
local budget = { left = 100, swept = 0 }

if at.newer then
  return { "incompatible", at.newer }
end
local i = st.form and item_read(at, key) or nil
local late, done = revision_stale(at, st, "o:" .. key, tonumber(ARGV[7]), ARGV[8], i, kept[5])
if late or done then
  return late or { "rested", st.waiting > 0 and 2 or 0 }
end
local sooner
if st.form then
  touch(at, st)
  sooner = expire(at, st, budget)
end
if budget.left < 100 then
  i = item_read(at, key)
end
if not item_stays(at, i) then
  if budget.left < 100 then
    handoff(at, st, budget)
    save(at, st)
    notify(at, st, sooner)
    publish(at)
  end
  return { "absent" }
end
local ends = math.min(at.ms + lasts, score_forever)
local longer = not exactly and lasts > 0 and lasts < (i.was.leased and i.pend or i.ends - at.ms)
if lasts == 0 then
  i.pend, i.ends, i.reason = 0, 0, ""
elseif i.was.leased and not longer then
  i.pend, i.reason = lasts, ARGV[6]
  i.ends = exactly and math.min(i.ends, ends) or i.ends -- of a shared one, which rests while others hold it
elseif not longer then
  i.pend, i.ends, i.reason = 0, ends, ARGV[6]
end
settle(at, st, key, i)
local change = revision_write(at, st, "o:" .. key, ARGV[8], revision_rest(lasts, ARGV[6]))
handoff(at, st, budget)
save(at, st, nil, change)
notify(at, st, i.ends > 0 and least(sooner, i.ends) or sooner)
publish(at)
return { "rested", ((budget.left <= 0 or st.met) and 2 or 0) + (longer and 1 or 0) }
