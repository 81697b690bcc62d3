--[[
pool_add: put resources at the end of the pool, or keep those that are in it, and hand on.
KEYS[1] state (HASH field -> number, c:claim -> record, r:claim -> resource)
KEYS[2] line (ZSET h:, a:, q:, t:claim, e:, x:, d:resource, u:binding -> score, see lib/bands)
KEYS[3] items (HASH i:resource -> item)
KEYS[4] free (HASH n:, p:resource -> next, previous)
KEYS[5] bindings (HASH b:name -> end, resource)
ARGV[1] how long they stay (ms, 0 = for good)
ARGV[2] how many may hold one at once (0 = as it was, 1 for a new one)
ARGV[3] the Replace that this is part of (0 = none)
ARGV[4] linger (ms)    ARGV[5] channel prefix    ARGV[6] name
ARGV[7...] x1: resource
RETURNS {"added", added, kept, more, ...} | {"superseded", generation} | {"incompatible", format}
REPLAY what is in the pool is kept    COST O(log n) a resource + at most 100 drops and grants
]]
-- Then follow those that are damaged: they stay so, until pool_mend has taken them out.
--- @include "lib/pool"
--- @include "lib/item"
--- @include "lib/settle"
--- @include "lib/poolfresh"
--- @include "lib/reclaim"
--- @include "lib/give"
--- @include "lib/handoff"
--- @include "lib/hasten"
--- @include "lib/poolsave"
--- @include "lib/more"
--- @include "lib/tell"
local lasts, max, gen = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local at, st, _, newer = pool(KEYS, ARGV[4], ARGV[5], ARGV[6])
local out, budget = {}, 100
local reply = { "added", 0, 0, 0 }

if newer then
  return { "incompatible", newer }
elseif gen > 0 and st.pool.gen ~= gen then
  return { "superseded", st.pool.gen }
end
poolfresh(at, st)
local spent = reclaim(at, st, budget)
for n = 7, #ARGV do
  local key = ARGV[n]
  local i, bad = item(at, key)
  if i and i.expiry > 0 and i.expiry <= at.ms then
    i.leaving = true -- what has expired is not kept but added
    settle(at, st, key, i)
    i = item(at, key)
  end
  if bad then
    reply[#reply + 1] = key
  else
    local which = i and not i.leaving and 3 or 2 -- kept or added
    reply[which] = reply[which] + 1
    if not i then
      i = { ends = 0, pend = 0, claims = {}, reason = "", listed = false, was = { ends = 0, expiry = 0 } }
      st.pool.resources = st.pool.resources + 1
    end
    i.max = max > 0 and max or i.max or 1
    i.expiry, i.leaving = lasts > 0 and at.ms + lasts or 0, false
    i.gen = math.max(gen, st.pool.gen)
    settle(at, st, key, i)
  end
end
spent = spent + handoff(at, st, budget - spent, out, give(at, st))
poolsave(at, st)
hasten(at, st, at.sooner, out)
tell(out)
reply[4] = more(at, spent >= budget)
return reply
