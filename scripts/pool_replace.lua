--[[
pool_replace: begin a Replace, or remove some of the resources that it did not name.
KEYS[1] state (HASH v -> values, c:claim -> record, r:claim -> resource, s:resource -> settings)
KEYS[2] line (ZSET place-claim, h:, t:claim, e:, x:, d:resource, u:binding, - -> score, see state/score)
KEYS[3] items (HASH i:resource -> item)
KEYS[4] free (ZSET resource -> its turn)
KEYS[5] bindings (HASH b:name -> end, resource)
ARGV[1] linger (ms)    ARGV[2] channel prefix    ARGV[3] name
ARGV[4] step: begin or prune
ARGV[5] the revision that the caller has seen, or for prune that of its Replace
ARGV[6] id of the call that begins it, or for prune the cursor (0 to begin)
ARGV[7...] x1: what the process that begins says of the settings
RETURNS {"begun", revision} | {"removed", cursor, removed, flags, ...} | {"differs", settings}
  | {"stale", revision, resource, what}
  | {"incompatible", format}
REPLAY the call that began it last is told the same    COST O(log n) each of about 100 resources
]]
-- flags 2: the run has stopped at its bound, sweep at once. After removed follow those that are
-- damaged: they stay so, until pool_mend has taken them out.
--- @include "kind/pool"
--- @include "state/fatten"
--- @include "state/touch"
--- @include "state/save"
--- @include "state/revision"
--- @include "line/handoff"
--- @include "wake/publish"
--- @include "pool/item"
--- @include "pool/settle"
--- @include "pool/agree"
local begins, rev = ARGV[4] == "begin", tonumber(ARGV[5])
local at, st = kind_open(KEYS, ARGV[1], ARGV[2], ARGV[3])

if at.newer then
  return { "incompatible", at.newer }
elseif begins then
  local last, by = revision_read(at, "replace")
  if by == ARGV[6] then
    return { "begun", last }
  elseif st.pool.gen > rev then
    return revision_superseded(at, st) -- what comes late begins nothing any more
  elseif not agree(st, (unpack(ARGV, 7))) then
    return { "differs", st.pool.settings } -- else it would end another Replace, and then add nothing
  end
  if st.form then
    touch(at, st) -- a full server must be able to shed
  end
  fatten(at, st, true)
  revision_raise(at, st)
  st.pool.gen = st.rev
  save(at, st, nil, { "replace", revision_text(st, ARGV[6], "") })
  return { "begun", st.rev }
elseif st.pool.gen ~= rev then
  return revision_superseded(at, st)
end
local page = redis.call("HSCAN", at.items, ARGV[6], "MATCH", "i*", "COUNT", 128)
local budget = { left = 100, swept = 0 }
local reply = { "removed", page[1], 0, 0 }
touch(at, st)
for n = 1, #page[2], 2 do
  local key = string.sub(page[2][n], 2)
  local i, bad = item_read(at, key, page[2][n + 1])
  if bad then
    reply[#reply + 1] = key
  elseif i.rev < rev and not i.leaving then
    i.leaving, reply[3] = true, reply[3] + 1
    settle(at, st, key, i)
  end
end
local filled = st.pool.filled
st.pool.filled = filled or page[1] == "0"
if st.pool.filled ~= filled then
  lanes_due(at, st, budget)
end
handoff(at, st, budget)
if reply[3] > 0 or budget.left < 100 or st.pool.filled ~= filled then
  save(at, st)
end
publish(at)
reply[4] = (budget.left <= 0 or st.met) and 2 or 0
return reply
