--[[
semaphore_resize: set the capacity; what is held stays held, and a rise is handed on.
KEYS[1] state (HASH v -> values, c:claim -> record; STRING see state/thin)
KEYS[2] line (ZSET place-claim, h:, t:claim, - -> score, see state/score)
ARGV[1] linger (ms)    ARGV[2] channel prefix    ARGV[3] name
ARGV[4] capacity    ARGV[5] keep it when idle (1, 0)
ARGV[6] set it of a name that has none, too (1, 0)
ARGV[7] the revision that the caller has seen    ARGV[8] id of the call
RETURNS {"resized", before, held, waiting, flags} | {"absent"} | {"stale", revision, resource, what}
  | {"incompatible", format}
REPLAY the call that changed it last is told the same    COST O(log n) + at most 100 drops and grants
]]
-- flags 2: the run has stopped at its bound, sweep at once.
--- @include "state/fetch"
--- @include "kind/semaphore"
--- @include "state/fatten"
--- @include "state/touch"
--- @include "state/save"
--- @include "state/revision"
--- @include "line/expire"
--- @include "line/handoff"
--- @include "wake/publish"
local time, kept, top = fetch(KEYS, nil, "o:")
local at, st = kind_open(KEYS, ARGV[1], ARGV[2], ARGV[3], nil, time, kept, top)
local budget = { left = 100, swept = 0 }

if at.newer then
  return { "incompatible", at.newer }
end
local before, cap = st.cap, tonumber(ARGV[4])
local late, done = revision_stale(at, st, "o:", tonumber(ARGV[7]), ARGV[8], nil, kept[3])
if late or done then
  return late or { "resized", revision_before(done), st.used, st.waiting, st.waiting > 0 and 2 or 0 }
elseif before == 0 and ARGV[6] ~= "1" then
  return { "absent" } -- more likely a name that was mistyped
elseif st.form then
  fatten(at, st, false)
  touch(at, st) -- a full server must be able to grant
else
  fatten(at, st, true)
end
st.cap, st.keep = cap, tonumber(ARGV[5])
local change = revision_write(at, st, "o:", ARGV[8], revision_capacity(cap, before))
expire(at, st, budget)
handoff(at, st, budget)
save(at, st, nil, change)
publish(at)
return { "resized", before, st.used, st.waiting, budget.left <= 0 and 2 or 0 }
