--[[
lock_force_hold: end a lock's hold with all its entries, whoever has it, hand on, and tell their nodes.
KEYS[1] state (HASH v -> values, c:claim -> record, stem; STRING see state/thin)
KEYS[2] line (ZSET place-claim, h:, t:claim, - -> score, see state/score)
ARGV[1] linger (ms)    ARGV[2] channel prefix    ARGV[3] name
ARGV[4] fence (0 = any)    ARGV[5] tombstone (ms)
RETURNS {"released", flags, fence, ended} | {"not_held", word} | {"other", fence} | {"incompatible", format}
REPLAY with the fence that it answered first    COST O(log n) + O(entries) + at most 100 drops and grants
]]
--- @include "state/fetch"
--- @include "kind/lock"
--- @include "line/force"
--- @include "owner/targets"
local at, st = kind_open(KEYS, ARGV[1], ARGV[2], ARGV[3], nil, fetch(KEYS, nil, "stem"))
if at.newer then
  return { "incompatible", at.newer }
end
local ended, reply = targets(at, st, ARGV[4])
return reply or { "released", force(at, st, ended, tonumber(ARGV[5]), { forced = true }) }
