--[[
semaphore_resize: set the capacity; what is held stays held, and a rise is handed on.
KEYS[1] state (HASH field -> number, c:claim -> record)
KEYS[2] line (ZSET h:, a:, q:, t:claim -> score, see lib/bands)
ARGV[1] capacity    ARGV[2] keep it when idle (1, 0)
ARGV[3] linger (ms)    ARGV[4] channel prefix    ARGV[5] name
ARGV[6] set it of a name that has none, too (1, 0)
RETURNS {"resized", before, held, waiting, more} | {"absent"} | {"incompatible", format}
REPLAY the capacity is set, not moved    COST O(log n) + at most 100 drops and grants
]]
--- @include "lib/open"
--- @include "lib/fresh"
--- @include "lib/touch"
--- @include "lib/sweep"
--- @include "lib/handoff"
--- @include "lib/save"
--- @include "lib/tell"
local at, st, _, newer = open(KEYS[1], KEYS[2], ARGV[3], ARGV[4], ARGV[5])
local out, budget = {}, 100

if newer then
  return { "incompatible", newer }
end
local before = st.cap
if before == 0 and ARGV[6] ~= "1" then
  return { "absent" } -- more likely a name that was mistyped
end
fresh(at, st)
if st.fmt > 0 then
  redis.call("ZCARD", at.line) -- what is of another type fails here, before any write
  touch(at, st) -- a full server must be able to grant
end
st.cap, st.keep = tonumber(ARGV[1]), tonumber(ARGV[2])
local spent = sweep(at, st, budget)
spent = spent + handoff(at, st, budget - spent, out)
save(at, st)
tell(out)
return { "resized", before, st.used, st.waiting, spent >= budget and 1 or 0 }
