--[[
pool_stats: count what a pool has, who waits, and what has expired.
KEYS[1] state (HASH v -> values, c:claim -> record, r:claim -> resource, s:resource -> settings)
KEYS[2] line (ZSET place-claim, h:, t:claim, e:, x:, d:resource, u:binding, - -> score, see state/score)
KEYS[3] items (HASH i:resource -> item)
ARGV[1] so many expired entries of a kind are looked into
RETURNS {"stats", resources, free, leased, resting, leaving, holders, waiting, expired} | {"incompatible", format}
REPLAY reads only    COST O(log n) + so many expired entries
]]
-- The counts are those after a sweep: a lease or a rest whose end has passed has ended.
--- @include "state/score"
--- @include "state/int"
--- @include "state/record"
--- @include "pool/open"
--- @include "pool/wants"
--- @include "pool/item"
--- @include "pool/remove"
--- @include "pool/cooldown"
local at, st = pool_open(KEYS, "0", "", "")
if at.newer then
  return { "incompatible", at.newer }
end
local p, met = st.pool, {}
local function count(from, to)
  return redis.call("ZCOUNT", at.line, int(from), int(to))
end
local function due(from)
  return redis.call("ZRANGEBYSCORE", at.line, int(from), int(from + at.ms), "WITHSCORES", "LIMIT", "0", ARGV[1])
end
-- meet is the item of a resource that something due is about, false for none.
local function meet(key)
  if key and met[key] == nil then
    met[key] = item_read(at, key) or false
  end
  return key and met[key]
end

local holds, rests, expiries = due(score_hold), due(score_rest), due(score_expiry)
for n = 1, #holds, 2 do
  local claim = string.sub(holds[n], 3)
  local v = redis.call("HMGET", at.state, "r:" .. claim, "c:" .. claim)
  local i, r = meet(v[1]), v[2] and record_read(v[2])
  if i then
    remove_claim(at, i, claim, cooldown_end(at, st, v[1], i, r and wants_read(r.terms) or nil,
      tonumber(holds[n + 1]) - score_hold, 0, ""))
  end
end
for n = 1, #rests, 2 do
  local i = meet(string.sub(rests[n], 3))
  if i and i.ends <= at.ms then
    i.ends = 0
  end
end
for n = 1, #expiries, 2 do
  local i = meet(string.sub(expiries[n], 3))
  if i then
    i.leaving = true
  end
end

local function digit(yes)
  return yes and 1 or 0
end
local resting = count(score_rest + at.ms + 1, score_rest + score_forever)
for _, i in pairs(met) do
  if i then
    local leased = #i.claims > 0
    local gone = i.leaving and not leased
    p.resources = p.resources - digit(gone)
    p.free = p.free + digit(not i.leaving and i.ends == 0 and #i.claims < i.max) - digit(i.listed)
    p.leased = p.leased + digit(leased) - digit(i.was.leased)
    p.leaving = p.leaving + digit(i.leaving and leased) - digit(i.was.leaving)
    resting = resting + digit(i.ends > at.ms and not gone) - digit(i.was.ends > at.ms)
  end
end
return {
  "stats", p.resources, p.free, p.leased, resting, p.leaving, count(score_hold + at.ms + 1, score_hold + score_forever),
  count(0, score_hold - 1),
  count(score_hold, score_hold + at.ms) + count(score_expiry, score_expiry + at.ms),
}
