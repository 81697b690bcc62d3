--[[
pool_sharers: let as many hold each resource as the settings say, of a page of all, and hand on.
KEYS[1] state (HASH v -> values, c:claim -> record, r:claim -> resource, s:resource -> settings)
KEYS[2] line (ZSET place-claim, h:, t:claim, e:, x:, d:resource, u:binding, - -> score, see state/score)
KEYS[3] items (HASH i:resource -> item)
KEYS[4] free (ZSET resource -> its turn)
KEYS[5] bindings (HASH b:name -> end, resource)
ARGV[1] linger (ms)    ARGV[2] channel prefix    ARGV[3] name
ARGV[4] cursor (0 to begin)    ARGV[5] the revision that pool_set has told
RETURNS {"page", cursor, flags} | {"incompatible", format}
REPLAY a page may be read again    COST O(log n) each of about 100 resources + at most 100 drops and grants
]]
-- flags 2: the run has stopped at its bound, sweep at once. A resource that has a number of its own
-- keeps it, one that was added since has what counted then, and all keep theirs where none is set. What
-- is held stays held.
--- @include "kind/pool"
--- @include "state/touch"
--- @include "state/save"
--- @include "line/expire"
--- @include "line/handoff"
--- @include "line/deadline"
--- @include "pool/item"
--- @include "pool/settle"
--- @include "pool/settings"
--- @include "wake/publish"
local at, st = kind_open(KEYS, ARGV[1], ARGV[2], ARGV[3])
local budget, changed, revision = { left = 100, swept = 0 }, false, tonumber(ARGV[5])

if at.newer then
  return { "incompatible", at.newer }
end
local sharers = settings_of(st).sharers
if not st.form or not sharers then
  return { "page", "0", 0 }
end
touch(at, st) -- a full server must be able to grant
local page = redis.call("HSCAN", at.items, ARGV[4], "MATCH", "i*", "COUNT", 128)
for n = 1, #page[2], 2 do
  local key = string.sub(page[2][n], 2)
  local i = item_read(at, key, page[2][n + 1])
  if i and i.max ~= sharers and i.rev <= revision then
    local _, own = settings_own(at, key, i)
    if not own then
      i.max, changed = sharers, true
      settle(at, st, key, i)
    end
  end
end
if changed then
  local sooner = expire(at, st, budget)
  handoff(at, st, budget)
  save(at, st)
  notify(at, st, sooner)
  publish(at)
end
return { "page", page[1], (budget.left <= 0 or st.met) and 2 or 0 }
