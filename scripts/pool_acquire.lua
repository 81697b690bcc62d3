--[[
pool_acquire: take a free resource, or join the line.
KEYS[1] state (HASH v -> values, c:claim -> record, r:claim -> resource, s:resource -> settings)
KEYS[2] line (ZSET place-claim, h:, t:claim, e:, x:, d:resource, u:binding, - -> score, see state/score)
KEYS[3] items (HASH i:resource -> item)
KEYS[4] free (ZSET resource -> its turn)
KEYS[5] bindings (HASH b:name -> end, resource)
ARGV[1] linger (ms)    ARGV[2] channel prefix    ARGV[3] name    ARGV[4] node
ARGV[5] claim id    ARGV[6] wait (1) or try (0)    ARGV[7] lane, see line/place
ARGV[8] fixed terms of the record, see state/record
ARGV[9] lease of a plain claim (ms, else "")    ARGV[10] its wait lease (ms, else "")
ARGV[11...] x1: what the process says of the settings; then those that it was told of
RETURNS {"plain", fence, resource, setting} | {"joined", ticket, ahead, next_ms, flags, setting}
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
local opinions, told = unpack(ARGV, 11)
local time, kept, top = fetch_fat(KEYS, ARGV[5], "pool")
local plain, full = fast_pool_acquire(time, kept, KEYS, ARGV[1], ARGV[4], ARGV[5], ARGV[8], ARGV[9], ARGV[10], opinions,
  told)
if plain then
  return plain
end

--- @include "fast/wait"
--- @include "state/values"
plain = full and ARGV[6] ~= "0" and fast_wait(full, top, KEYS, ARGV[1], ARGV[4], ARGV[5], ARGV[7], ARGV[8], values_one)
if plain then
  return plain
end

-- What only the other cases need is not even defined before.
--- @include "kind/pool"
--- @include "state/record"
--- @include "line/acquire"
local at, st, known = kind_open(KEYS, ARGV[1], ARGV[2], ARGV[3], ARGV[5], time, kept, top)
local ask = {
  claim = ARGV[5], waits = ARGV[6] ~= "0", lane = ARGV[7], r = record_new(ARGV[4], ARGV[8]), opinions = opinions,
}
local reply = acquire(at, st, known, ask)
if ask.differs and st.pool.settings ~= told and (reply[1] == "granted" or reply[1] == "queued") then
  reply[#reply + 1] = st.pool.settings
end
return reply
