--[[
pool_mend: make damaged resources whole, or take them out of the pool; a held one stays with its holders.
KEYS[1] state (HASH v -> values, c:claim -> record, r:claim -> resource, s:resource -> settings)
KEYS[2] line (ZSET place-claim, h:, t:claim, e:, x:, d:resource, u:binding, - -> score, see state/score)
KEYS[3] items (HASH i:resource -> item)
KEYS[4] free (ZSET resource -> its turn)
KEYS[5] bindings (HASH b:name -> end, resource)
ARGV[1] linger (ms)    ARGV[2] channel prefix    ARGV[3] name
ARGV[4] it stays in the pool (1) or leaves it (0)
ARGV[5...] x2: resource, claim that holds it ("" = none); all of a resource in one call
RETURNS {"removed", removed, flags} | {"incompatible", format}
REPLAY what is whole stays as it is    COST O(log n) a claim + at most 100 drops and grants
]]
-- The claims are those that a walk over all claims has found: nobody gets what is damaged, so there
-- are no others.
--- @include "kind/pool"
--- @include "state/score"
--- @include "state/record"
--- @include "state/touch"
--- @include "state/save"
--- @include "pool/item"
--- @include "pool/wants"
--- @include "pool/settle"
--- @include "line/handoff"
--- @include "wake/publish"
local at, st = kind_open(KEYS, ARGV[1], ARGV[2], ARGV[3])
local budget = { left = 100, swept = 0 }
local removed, keys, claims = 0, {}, {}

if at.newer then
  return { "incompatible", at.newer }
elseif not st.form then
  return { "removed", 0, 0 }
end
for n = 5, #ARGV, 2 do
  local key, claim = ARGV[n], ARGV[n + 1]
  if not claims[key] then
    keys[#keys + 1], claims[key] = key, {}
  end
  local text = claim ~= "" and redis.call("HGET", at.state, "r:" .. claim) == key
    and redis.call("HGET", at.state, "c:" .. claim)
  local r = text and record_read(text)
  if r and not wants_read(r.terms).shared then
    table.insert(claims[key], claim)
  end
end
touch(at, st) -- a full server must be able to shed
for _, key in ipairs(keys) do
  local _, bad = item_read(at, key)
  if bad then
    if removed == 0 then -- an item that was made by hand was never counted
      st.pool.resources = redis.call("HLEN", at.items) - 1
      st.pool.free = math.max(redis.call("ZCARD", at.free) - 1, 0)
    end
    -- What it was shows in all that is stored outside the item.
    local scores = redis.call("ZMSCORE", at.line, "e:" .. key, "x:" .. key, "d:" .. key)
    local rests, leaves = tonumber(scores[1]) or score_rest, tonumber(scores[2]) or score_expiry
    local ended = ((tonumber(scores[3]) or score_damage) - score_damage) % 2 == 1
    local i, held = item_new(), claims[key]
    i.max, i.leaving, i.claims = math.max(#held, 1), ARGV[4] ~= "1", held
    i.listed = redis.call("ZSCORE", at.free, key) and true or false
    i.own = redis.call("HEXISTS", at.state, "s:" .. key) == 1
    i.was = {
      ends = rests - score_rest, expiry = leaves - score_expiry, leased = #held > 0 and not ended,
      leaving = leaves - score_expiry == score_forever,
    }
    settle(at, st, key, i)
    redis.call("ZREM", at.line, "d:" .. key)
    removed = removed + 1
  end
end
if removed > 0 then
  handoff(at, st, budget)
  save(at, st)
end
publish(at)
return { "removed", removed, (budget.left <= 0 or st.met) and 2 or 0 }
