--[[
pool_inspect: count what a pool has, and check that all of it fits together.
KEYS[1] state (HASH v -> values, c:claim -> record, r:claim -> resource, s:resource -> settings)
KEYS[2] line (ZSET place-claim, h:, t:claim, e:, x:, d:resource, u:binding, - -> score, see state/score)
KEYS[3] items (HASH i:resource -> item)
KEYS[4] free (ZSET resource -> its turn)
KEYS[5] bindings (HASH b:name -> end, resource)
ARGV[1] part (items, bindings, free, line, state)    ARGV[2] cursor (items: 0 to begin)
ARGV[3] about how many    ARGV[4] so many resources are read in one step
RETURNS {"part", next_part, cursor, mark, resources, free, leased, leaving, held, waiting, parked, ...}
  | {"incompatible", format}
REPLAY reads only    COST O(n) up to so many resources, O(page) above
]]
-- mark is another one once something was taken, given back or changed. After the counts that the state keeps come
-- those of this step: resources, free ones
-- by their items, leased, resting, leaving, bindings, members of free, holds,
-- places, places in lanes; then for each problem a word and the key or claim that it is about. The next
-- part is "" when all has been read.
--- @include "state/score"
--- @include "state/record"
--- @include "state/int"
--- @include "pool/counts"
--- @include "pool/open"
--- @include "pool/item"
--- @include "pool/wants"
--- @include "pool/binding"
--- @include "pool/audit"
--- @include "line/place"
local at, st = pool_open(KEYS, "0", "", "")
if at.newer then
  return { "incompatible", at.newer }
end
local part, cursor, count, p = ARGV[1], ARGV[2], ARGV[3], st.pool
-- A resource has an item, a turn, and a claim or two with what that keeps.
local entries = redis.call("HLEN", at.state) + redis.call("ZCARD", at.line) + redis.call("HLEN", at.items)
  + redis.call("ZCARD", at.free) + redis.call("HLEN", at.bindings)
local whole = p.resources <= tonumber(ARGV[4]) and entries <= 10 * tonumber(ARGV[4])
local seen = { resources = 0, free = 0, leased = 0, resting = 0, leaving = 0, bindings = 0, listed = 0, holds = 0,
  places = 0, parked = 0 }
local problems = {}
local function problem(word, about)
  if #problems < 200 then
    problems[#problems + 1], problems[#problems + 2] = word, about
  end
end

-- In one step everything is read once, and looked up here.
local known = {}
local function read(key, pairs_of)
  local map = {}
  for n = 1, #pairs_of, 2 do
    map[pairs_of[n]] = pairs_of[n + 1]
  end
  known[key] = { list = pairs_of, map = map }
end
if whole then
  read(at.state, redis.call("HGETALL", at.state))
  read(at.items, redis.call("HGETALL", at.items))
  read(at.free, redis.call("ZRANGE", at.free, 0, -1, "WITHSCORES"))
  read(at.bindings, redis.call("HGETALL", at.bindings))
  read(at.line, redis.call("ZRANGE", at.line, 0, -1, "WITHSCORES"))
end
local function get(key, field)
  if whole then
    return known[key].map[field] or nil
  end
  return redis.call("HGET", key, field) or nil
end
local function score(member, key)
  key = key or at.line
  return tonumber(whole and known[key].map[member] or not whole and redis.call("ZSCORE", key, member) or nil)
end
local function page(key)
  if whole then
    return known[key].list, "0"
  end
  local reply = (key == at.line or key == at.free) and redis.call("ZSCAN", key, cursor, "COUNT", count)
    or redis.call("HSCAN", key, cursor, "COUNT", count)
  return reply[2], reply[1]
end

-- Of a damaged item only what is not in it can be checked.
local function check_damaged(key)
  local rests, leaves = score("e:" .. key), score("x:" .. key)
  seen.resources = seen.resources + 1
  seen.free = seen.free + (score(key, at.free) and 1 or 0)
  seen.resting = seen.resting + (rests and 1 or 0)
  seen.leaving = seen.leaving + (leaves == score_expiry + score_forever and 1 or 0)
  problem("damaged", key)
end
local function check_item(key, i)
  local listed = score(key, at.free)
  seen.resources = seen.resources + 1
  seen.free = seen.free + (i.listed and 1 or 0)
  seen.leased = seen.leased + (i.was.leased and 1 or 0)
  seen.resting = seen.resting + (i.ends > 0 and 1 or 0)
  seen.leaving = seen.leaving + (i.leaving and 1 or 0)
  if i.listed and not listed then
    problem("unlisted", key)
  elseif listed and not i.listed then
    problem(i.was.leased and "both" or "listed", key)
  end
  if (score("e:" .. key) or score_rest) ~= score_rest + i.ends then
    problem("rest", key)
  end
  if (score("x:" .. key) or score_expiry) ~= score_expiry + (i.leaving and score_forever or i.expiry) then
    problem("expiry", key)
  end
  if i.leaving and not i.was.leased then
    problem("left", key)
  end
  if i.own and not get(at.state, "s:" .. key) then
    problem("settings", key)
  end
  for _, claim in ipairs(i.claims) do
    if not score("h:" .. claim) or get(at.state, "r:" .. claim) ~= key then
      problem("holder", claim)
    end
  end
end

local steps = {}
function steps.items()
  local list, to = page(at.items)
  for n = 1, #list, 2 do
    if string.sub(list[n], 1, 1) == "i" then
      local key = string.sub(list[n], 2)
      local i, bad = item_read(at, key, list[n + 1])
      if bad then
        check_damaged(key)
      else
        check_item(key, i)
      end
    end
  end
  return to ~= "0" and "items" or "bindings", to
end
function steps.bindings()
  local list, to = page(at.bindings)
  for n = 1, #list, 2 do
    if string.sub(list[n], 1, 1) == "b" then
      local name, ends = string.sub(list[n], 2), binding_parse(list[n + 1])
      seen.bindings = seen.bindings + 1
      if not ends or (score("u:" .. name) or score_bind + score_forever) ~= score_bind + ends then
        problem("binding", name)
      end
    end
  end
  return to ~= "0" and "bindings" or "free", to
end
function steps.free()
  local list, to = page(at.free)
  for n = 1, #list, 2 do
    local key = list[n]
    if key ~= "" then
      seen.listed = seen.listed + 1
      if not get(at.items, "i" .. key) then
        problem("free_orphan", key)
      end
    end
  end
  return to ~= "0" and "free" or "line", to
end
function steps.line()
  local list, to = page(at.line)
  for n = 1, #list, 2 do
    local kind, about = string.sub(list[n], 1, 1), string.sub(list[n], 3)
    local place, waits = string.match(list[n], place_member)
    if kind == "h" then
      seen.holds = seen.holds + 1
    elseif place then
      seen.places, seen.parked = seen.places + 1, seen.parked + (#place == lane_width and 1 or 0)
    end
    local bad = kind == "d" and select(2, item_read(at, about))
    if kind == "o" and not get(at.state, list[n])
      or (kind == "e" or kind == "x") and not get(at.items, "i" .. about)
      or kind == "u" and not get(at.bindings, "b" .. about)
      or (waits or kind == "h" or kind == "t") and not get(at.state, "c:" .. (waits or about))
      or kind == "h" and not get(at.state, "r:" .. about) or kind == "w" and not get(at.state, "l:" .. about)
      or (kind == "p" or place and #place == lane_width) and not get(at.state, "q:" .. (waits or about))
      or kind == "d" and not bad then
      problem("line_orphan", list[n])
    end
  end
  return to ~= "0" and "line" or "state", to
end
function steps.state()
  local list, to = page(at.state)
  for n = 1, #list, 2 do
    local kind, claim = string.sub(list[n], 1, 2), string.sub(list[n], 3)
    local r = kind == "c:" and record_read(list[n + 1])
    local i, bad = nil, kind ~= "s:"
    if kind == "s:" then
      i, bad = item_read(at, claim) -- a resource
    end
    if not bad and not (i and i.own) then
      problem("settings", claim)
    elseif r and not score("h:" .. claim) and not score(r.place .. place_mark .. claim) then
      problem("claim_orphan", claim)
    elseif kind == "o:" and not score(list[n]) then
      problem("revision_orphan", claim)
    elseif kind == "l:" then
      audit_lane(at, claim, list[n + 1], score, problem)
    elseif kind == "q:" then
      audit_member(at, claim, list[n + 1], get, score, problem)
    elseif kind == "r:" then
      local text = get(at.state, "c:" .. claim)
      r = text and record_read(text)
      i, bad = item_read(at, list[n + 1])
      local holds = bad or r and wants_read(r.terms).shared
      for _, holder in ipairs(i and i.claims or {}) do
        holds = holds or holder == claim
      end
      if not holds or not score("h:" .. claim) then
        problem("hold_orphan", claim)
      end
    end
  end
  return to ~= "0" and "state" or "", to
end

repeat
  part, cursor = steps[part]()
until not whole or part == ""
local reply = {
  "part", part, cursor, table.concat({ int(st.fence), int(st.ticket), st.used, st.waiting, st.rev,
  pool_counts_write(p, st.used) }, " "),
  p.resources, p.free, p.leased, p.leaving, st.used, st.waiting, p.parked,
  seen.resources, seen.free, seen.leased, seen.resting, seen.leaving, seen.bindings, seen.listed,
  seen.holds, seen.places, seen.parked,
}
for _, field in ipairs(problems) do
  reply[#reply + 1] = field
end
return reply
