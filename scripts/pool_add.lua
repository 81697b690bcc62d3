--[[
pool_add: put resources at the end of the pool, or keep those that are in it, and hand on.
KEYS[1] state (HASH v -> values, c:claim -> record, r:claim -> resource, s:resource -> settings)
KEYS[2] line (ZSET place-claim, h:, t:claim, e:, x:, d:resource, u:binding, - -> score, see state/score)
KEYS[3] items (HASH i:resource -> item)
KEYS[4] free (ZSET resource -> its turn)
KEYS[5] bindings (HASH b:name -> end, resource)
ARGV[1] linger (ms)    ARGV[2] channel prefix    ARGV[3] name
ARGV[4] how long they stay (ms, 0 = for good)
ARGV[5] how many may hold one at once (0 = as the settings say, else as it was, 1 for a new one)
ARGV[6] the Replace that this is part of (0 = none)    ARGV[7] 1 = the last part of an Add, else 0
ARGV[8] what the process says of the settings, see pool/settings ("" = nothing)
ARGV[9...] x1: resource
RETURNS {"added", added, kept, flags, ...} | {"differs", settings}
  | {"stale", revision, resource, what}
  | {"incompatible", format}
REPLAY what is in the pool is kept    COST O(log n) a resource + at most 100 drops and grants
]]
-- flags 2: the run has stopped at its bound, sweep at once. Then follow those that are
-- damaged: they stay so, until pool_mend has taken them out.
--- @include "kind/pool"
--- @include "state/fatten"
--- @include "state/save"
--- @include "state/revision"
--- @include "state/texts"
--- @include "line/expire"
--- @include "line/handoff"
--- @include "line/deadline"
--- @include "pool/item"
--- @include "pool/settle"
--- @include "pool/agree"
--- @include "wake/publish"
local lasts, max, gen = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local at, st = kind_open(KEYS, ARGV[1], ARGV[2], ARGV[3])
local budget = { left = 100, swept = 0 }
local reply = { "added", 0, 0, 0 }

if at.newer then
  return { "incompatible", at.newer }
elseif gen > 0 and st.pool.gen ~= gen then
  return revision_superseded(at, st)
elseif not agree(st, ARGV[8], true) then
  return { "differs", st.pool.settings }
end
local sharers = settings_of(st).sharers
fatten(at, st, true)
revision_raise(at, st)
local sooner = expire(at, st, budget)
local texts, met = texts_of(at.items, "i", 9), {}
for n = 9, #ARGV do
  local key, text, i, bad = ARGV[n], texts[n - 8], nil, nil
  if text or met[key] then
    i, bad = item_read(at, key, not met[key] and text or nil)
  end
  met[key] = true -- from now on it is as this call leaves it
  if i and i.expiry > 0 and i.expiry <= at.ms then
    i.leaving = true -- what has expired is not kept but added
    settle(at, st, key, i)
    i = item_read(at, key)
  end
  if bad then
    reply[#reply + 1] = key
  else
    local which = i and not i.leaving and 3 or 2 -- kept or added
    reply[which] = reply[which] + 1
    if not i then
      i = item_new()
      st.pool.resources = st.pool.resources + 1
    end
    local most, _, own = i.max, settings_own(at, key, i)
    i.max = own or max > 0 and max or sharers or i.max or 1
    i.expiry, i.leaving = lasts > 0 and at.ms + lasts or 0, false
    -- To keep it as it was overtakes no operator.
    i.rev = which == 3 and i.max == most and math.max(i.rev, st.pool.gen) or st.rev
    settle(at, st, key, i)
  end
end
if not st.pool.filled and ARGV[7] == "1" and redis.call("HEXISTS", at.state, "refresh") == 0 then
  st.pool.filled = true -- else a Source fills it, by a Replace
  lanes_due(at, st, budget)
end
handoff(at, st, budget)
save(at, st)
notify(at, st, sooner)
publish(at)
reply[4] = (budget.left <= 0 or st.met) and 2 or 0
return reply
