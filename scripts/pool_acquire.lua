--[[
pool_acquire: take a free resource, or join the line.
KEYS[1] state (HASH v -> values, c:claim -> record, r:claim -> resource, s:resource -> settings)
KEYS[2] line (ZSET place-claim, h:, t:claim, e:, x:, d:resource, u:binding, - -> score, see state/score)
KEYS[3] items (HASH i:resource -> item)
KEYS[4] free (ZSET resource -> its turn)
KEYS[5] bindings (HASH b:name -> end, resource)
ARGV[1] claim id    ARGV[2] node and fixed terms, as the record ends
ARGV[3] lease of a plain claim (ms, else "")    ARGV[4] linger (ms)
ARGV[5] what the process says of the settings    ARGV[6] those that it was told of
ARGV[7] the rest, see state/ask
RETURNS plain fence
  | {"granted", ticket, fence, left_ms, flags, setting, resource}
  | {"queued", ticket, fence, left_ms, flags, setting, extra, place, ahead, next_ms}
  | {"full", held, waiting, swept, flags, setting} | {"ahead", held, waiting, swept, flags, setting}
  | {"held", held, waiting, swept, flags, setting} | {"resting", held, waiting, swept, flags, setting}
  | {"absent", held, waiting, swept, flags, setting}
  | {"differs", held, waiting, swept, flags, setting, settings}
  | {"limited", held, waiting, swept, flags, setting, settings}
  | {"paused", held, waiting, swept, flags, setting, extra, left_ms, since, reason}
  | {"gone"} | {"foreign"} | {"incompatible", format}
REPLAY the same claim gets the same answer    COST O(log n) + at most 100 drops and grants
]]
-- A plain claim wants any for its own, and names no binding; it has no maximum hold, and a lease no longer than
-- its wait lease. The fields are those of line/reply; the fixed terms end with those of pool/wants, and see
-- pool/settings. A process that says something else than the settings, and was not told of them, has them at the end of
-- granted and queued.
--- @include "state/fetch"
--- @include "fast/pool_acquire"
local time, kept = redis.call("TIME"), redis.call("HMGET", KEYS[1], "v", "c:" .. ARGV[1], "pool")
local plain, moment, nearest = fast_pool_acquire(time, kept, KEYS, ARGV[4], ARGV[1], ARGV[2], ARGV[3], ARGV[5], ARGV[6])
if plain then
  return plain
end

--- @include "fast/pool_wait"
plain = moment and fast_pool_wait(moment, nearest, kept, KEYS, ARGV[4], ARGV[1], ARGV[2], ARGV[7])
if plain then
  return plain
end

-- What only the other cases need is not even defined before.
--- @include "kind/pool"
--- @include "state/ask"
--- @include "state/record"
--- @include "line/acquire"
local waits, _, lane, _, channel, name = string.match(ARGV[7], ask_acquire)
local at, st, known = kind_open(KEYS, ARGV[4], channel, name, ARGV[1], time, kept, false)
local ask = {
  claim = ARGV[1], waits = waits ~= "0", lane = lane, r = record_new(string.match(ARGV[2], record_owns)),
  opinions = ARGV[5],
}
local reply = acquire(at, st, known, ask)
if ask.differs and st.pool.settings ~= ARGV[6] and (reply[1] == "granted" or reply[1] == "queued") then
  reply[#reply + 1] = st.pool.settings
end
return reply
