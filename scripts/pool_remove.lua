--[[
pool_remove: take resources out of the pool; a leased one stays with its holders until it comes back.
KEYS[1] state (HASH v -> values, c:claim -> record, r:claim -> resource, s:resource -> settings)
KEYS[2] line (ZSET place-claim, h:, t:claim, e:, x:, d:resource, u:binding, - -> score, see state/score)
KEYS[3] items (HASH i:resource -> item)
KEYS[4] free (ZSET resource -> its turn)
KEYS[5] bindings (HASH b:name -> end, resource)
ARGV[1] linger (ms)    ARGV[2] channel prefix    ARGV[3] name
ARGV[4] the revision that the caller has seen    ARGV[5] id of the call
ARGV[6...] x1: resource
RETURNS {"removed", removed, flags, ...} | {"stale", revision, resource, what} | {"incompatible", format}
REPLAY the call that removed last is told the same    COST O(log n) a resource + at most 100 drops and grants
]]
-- flags 2: the run has stopped at its bound, sweep at once. Then follow those that are damaged: they
-- stay so, until pool_mend has taken them out. A Replace that is under way ends.
--- @include "kind/pool"
--- @include "state/int"
--- @include "state/touch"
--- @include "state/save"
--- @include "state/revision"
--- @include "state/texts"
--- @include "line/handoff"
--- @include "wake/publish"
--- @include "pool/item"
--- @include "pool/settle"
local stamp, id = tonumber(ARGV[4]), ARGV[5]
local at, st = kind_open(KEYS, ARGV[1], ARGV[2], ARGV[3])
local budget = { left = 100, swept = 0 }
local reply = { "removed", 0, 0 }
local items, again = {}, false

if at.newer then
  return { "incompatible", at.newer }
elseif not st.form then
  return reply
end
local _, by, count = revision_read(at, "removed")
local replaced = revision_read(at, "replace")
if by == id then
  again, reply[2], reply[3] = true, tonumber(count), st.waiting > 0 and 2 or 0
elseif replaced > stamp then
  return { "stale", replaced, "", "replaced" }
end
local texts, changes = texts_of(at.items, "i", 6), texts_of(at.state, "o:", 6)
for n = 6, #ARGV do
  local key, i, bad = ARGV[n], nil, nil
  if texts[n - 5] then
    i, bad = item_read(at, key, texts[n - 5])
  end
  if bad then
    reply[#reply + 1] = key
  end
  local late = not again and revision_stale(at, st, "o:" .. key, stamp, id, i, changes[n - 5])
  if late then
    return late
  end
  items[key] = i
end
if again then
  return reply
end
touch(at, st) -- a full server must be able to shed
for n = 6, #ARGV do
  local i = items[ARGV[n]]
  if i and not i.leaving then
    i.leaving, reply[2] = true, reply[2] + 1
    settle(at, st, ARGV[n], i)
  end
end
if reply[2] > 0 or reply[4] then
  revision_raise(at, st)
  st.pool.gen = st.rev
  handoff(at, st, budget)
  save(at, st, nil, { "removed", revision_text(st, id, int(reply[2])) })
  publish(at)
  reply[3] = (budget.left <= 0 or st.met) and 2 or 0
end
return reply
