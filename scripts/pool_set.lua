--[[
pool_set: an operator sets what a pool goes by, or what a resource has of its own.
KEYS[1] state (HASH v -> values, c:claim -> record, r:claim -> resource, s:resource -> settings)
KEYS[2] line (ZSET place-claim, h:, t:claim, e:, x:, d:resource, u:binding, - -> score, see state/score)
KEYS[3] items (HASH i:resource -> item)
KEYS[4] free (ZSET resource -> its turn)
KEYS[5] bindings (HASH b:name -> end, resource)
ARGV[1] linger (ms)    ARGV[2] channel prefix    ARGV[3] name
ARGV[4] resource ("" = the pool)
ARGV[5] words of pool/settings: policy to hold of a pool, cooldown to bindfor of a resource (. = as it is, - = unset)
ARGV[6] the same for people    ARGV[7] the revision that the caller has seen    ARGV[8] id of the call
RETURNS {"set", flags, settings, revision} | {"absent"} | {"stale", revision, resource, what}
  | {"incompatible", format}
REPLAY the call that changed it last is told the same    COST O(log n) + at most 100 drops and grants
]]
-- flags 2: the run has stopped at its bound, sweep at once. Of a pool, pool_sharers is to follow where
-- the number of sharers has changed.
--- @include "kind/pool"
--- @include "state/fetch"
--- @include "state/fatten"
--- @include "state/touch"
--- @include "state/save"
--- @include "state/revision"
--- @include "line/expire"
--- @include "line/handoff"
--- @include "line/deadline"
--- @include "pool/item"
--- @include "pool/settle"
--- @include "pool/settings"
--- @include "wake/publish"
local key, words = ARGV[4], ARGV[5]
local time, kept, top = fetch(KEYS, nil, "pool", "r:", "o:" .. key)
local at, st = kind_open(KEYS, ARGV[1], ARGV[2], ARGV[3], nil, time, kept, top)
local p, budget = st.pool, { left = 100, swept = 0 }

if at.newer then
  return { "incompatible", at.newer }
end
local i = key ~= "" and st.form and item_read(at, key)
local late, done = revision_stale(at, st, "o:" .. key, tonumber(ARGV[7]), ARGV[8], i, kept[5])
if late or done then
  local text = key == "" and p.settings or redis.call("HGET", at.state, "s:" .. key) or settings_own_unset
  return late or { "set", st.waiting > 0 and 2 or 0, text, st.rev }
end
if key ~= "" and not item_stays(at, i) then
  return { "absent" }
end
if st.form then
  touch(at, st) -- a full server must be able to grant
end
fatten(at, st, true)
local text, some
if key == "" then
  text, some = settings_merge(p.settings, "- " .. words)
  text = (some and "o" or "-") .. string.sub(text, 2)
  p.settings = text
else
  local _, had = settings_own(at, key, i)
  text, some = settings_merge(i.own and redis.call("HGET", at.state, "s:" .. key) or settings_own_unset, words)
  if some then
    redis.call("HSET", at.state, "s:" .. key, text)
  else
    redis.call("HDEL", at.state, "s:" .. key)
  end
  i.own = some
  local _, sharers = settings_own(at, key, i)
  if sharers or had then -- else an Add decides, and not this call
    i.max = sharers or settings_of(st).sharers or 1
  end
  settle(at, st, key, i)
end
local change = revision_write(at, st, "o:" .. key, ARGV[8], ARGV[6])
local sooner = expire(at, st, budget)
handoff(at, st, budget)
save(at, st, nil, change)
notify(at, st, sooner)
publish(at)
return { "set", (budget.left <= 0 or st.met) and 2 or 0, text, st.rev }
