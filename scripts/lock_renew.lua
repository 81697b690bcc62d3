--[[
lock_renew: the calls of a node's own claims: heartbeats, confirmations, renewals, extensions.
KEYS[1] state (HASH v -> values, c:claim -> record, stem; STRING see state/thin)
KEYS[2] line (ZSET place-claim, h:, t:claim, - -> score, see state/score)
ARGV[1] linger (ms)    ARGV[2] channel prefix    ARGV[3] name    ARGV[4] node
ARGV[5...] x2: claim id, mode (beat, want, "beat <zombie limit, ms>", "want <zombie limit, ms>", renew, detach,
"extend <ms> <call id>")
RETURNS {"renewed", next_ms, flags, setting, ...} | {"held", left_ms, fence, ...} | {"incompatible", format}
REPLAY a lease is counted from now; an extension is added once
COST O(log n) a claim + at most 100 drops, grants, asks
]]
-- For each claim three fields follow behind the setting: a word, the milliseconds left, the fence, see
-- line/renew. Held says of each no more than what is left and the fence: it is held.
--- @include "state/fetch"
--- @include "state/record"
--- @include "fast/beats"
--- @include "fast/renew"
local time, kept, top = fetch(KEYS, ARGV[5], "stem")
if top and #ARGV == 6 and ARGV[6] == "beat" and kept[2] and string.sub(kept[2], 1, record_phase) == record_holds then
  local left, fence = fast_renew(fast_beats(time, ARGV[1], ARGV[4]), kept, KEYS[1], KEYS[2], ARGV[5])
  if left then
    return { "held", left, fence }
  end
end

-- What only the other cases need is not even defined before.
--- @include "kind/lock"
--- @include "line/renew"
local at, st = kind_open(KEYS, ARGV[1], ARGV[2], ARGV[3], ARGV[5], time, kept, top)
return renew(at, st, ARGV[4], { unpack(ARGV, 5) })
