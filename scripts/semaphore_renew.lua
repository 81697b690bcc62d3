--[[
semaphore_renew: the calls of a node's own claims: heartbeats, confirmations, renewals.
KEYS[1] state (HASH v -> values, c:claim -> record; STRING see state/thin)
KEYS[2] line (ZSET place-claim, h:, t:claim, - -> score, see state/score)
ARGV[1] linger (ms)    ARGV[2] channel prefix    ARGV[3] name    ARGV[4] node
ARGV[5...] x2: claim id, mode (beat, want, renew, detach)
RETURNS {"renewed", next_ms, flags, setting, ...} | {"held", left_ms, fence, ...} | {"incompatible", format}
REPLAY a lease is counted from now; a fixed one starts once    COST O(log n) a claim + at most 100 drops, grants, asks
]]
-- For each claim three fields follow behind the setting: a word, the milliseconds left, the fence, see
-- line/renew. Held says of each no more than what is left and the fence: it is held.
--- @include "state/fetch"
--- @include "state/record"
--- @include "fast/beats"
--- @include "fast/renew"
--- @include "fast/renew_batch"
local time, kept, top = fetch(KEYS, ARGV[5])
if top and ARGV[6] == "beat" and kept[2] and string.sub(kept[2], 1, record_phase) == record_holds then
  local beats = fast_beats(time, ARGV[1], ARGV[4])
  if #ARGV > 6 then
    local reply = fast_renew_batch(beats, kept, KEYS[1], KEYS[2], ARGV, 5)
    if reply then
      return reply
    end
  else
    local left, fence = fast_renew(beats, kept, KEYS[1], KEYS[2], ARGV[5])
    if left then
      return { "held", left, fence }
    end
  end
end

-- What only the other cases need is not even defined before.
--- @include "kind/semaphore"
--- @include "line/renew"
local at, st = kind_open(KEYS, ARGV[1], ARGV[2], ARGV[3], ARGV[5], time, kept, top)
return renew(at, st, ARGV[4], { unpack(ARGV, 5) })
