--[[
pool_inspect: count what a pool has, and check that all of it fits together.
KEYS[1] state (HASH field -> number, c:claim -> record, r:claim -> resource)
KEYS[2] line (ZSET h:, a:, q:, t:claim, e:, x:resource, u:binding -> score, see lib/bands)
KEYS[3] items (HASH i:resource -> item)
KEYS[4] free (HASH n:, p:resource -> next, previous)
KEYS[5] bindings (HASH b:name -> end, resource)
ARGV[1] part (items, bindings, walk, links, line, state)    ARGV[2] cursor (items: 0 to begin)
ARGV[3] about how many    ARGV[4] so many resources are read in one step
RETURNS {"part", next_part, cursor, moves, resources, free, leased, leaving, held, waiting, ...}
  | {"incompatible", format}
REPLAY reads only    COST O(n) up to so many resources, O(page) above
]]
local function fetch(state, claim, ...)
  return redis.call("TIME"),
    redis.call("HMGET", state, "fmt", "counts", "ticket", "fence", "exp", "c:" .. (claim or ""), ...)
end
local function now(t)
  local seconds, micros = tonumber(t[1]), tonumber(t[2])
  return seconds * 1000 + (micros - micros % 1000) / 1000, seconds * 1000000 + micros
end
local function load(at, v)
  local cap, used, waiting, gone, forever, keep
  if v[2] then
    cap, used, waiting, gone, forever, keep = string.match(v[2], "^(%S+) (%S+) (%S+) (%S+) (%S+) (%S+)")
  end
  local st = {
    fmt = tonumber(v[1] or 0),
    cap = tonumber(cap or 0),
    used = tonumber(used or 0),
    waiting = tonumber(waiting or 0),
    gone = tonumber(gone or 0),
    forever = tonumber(forever or 0),
    keep = tonumber(keep or 0),
    ticket = tonumber(v[3] or 0),
    fence = tonumber(v[4] or 0),
    exp = tonumber(v[5] or 0),
  }
  at.cap, at.ticket = st.cap, st.ticket
  return st
end
local function assemble(t, v, state, line, linger, channel, name)
  local ms, us = now(t)
  local at = { state = state, line = line, linger = tonumber(linger), channel = channel, name = name, ms = ms, us = us }
  local st = load(at, v)
  return at, st, v[6], st.fmt > 1 and st.fmt or nil, v[7], v[8]
end
local function open(state, line, linger, channel, name, claim, ...)
  local t, v = fetch(state, claim, ...)
  return assemble(t, v, state, line, linger, channel, name)
end
local function pool(keys, linger, channel, name, claim)
  local at, st, text, newer, counts, resource = open(keys[1], keys[2], linger, channel, name, claim, "pool",
    "r:" .. (claim or ""))
  at.items, at.free, at.bindings = keys[3], keys[4], keys[5]
  at.more = { at.items, at.free, at.bindings }
  local n = {}
  for word in string.gmatch(counts or "0 0 0 0 0 0", "%d+") do
    n[#n + 1] = tonumber(word)
  end
  st.pool = { resources = n[1], free = n[2], leased = n[3], leaving = n[4], gen = n[5], moves = n[6] }
  return at, st, text, newer, resource
end
local band_width = 17592186044416
local all_bands = {
  forever = band_width - 1,
  alive = band_width,
  queue = 2 * band_width,
  queue_end = 258 * band_width - 1,
  tomb = 260 * band_width,
  rest = 262 * band_width,
  expiry = 264 * band_width,
  bind = 266 * band_width,
  width = band_width,
}
local function bands()
  return all_bands
end
local function item(at, key, text)
  text = text or redis.call("HGET", at.items, "i" .. key)
  if not text then
    return nil
  end
  local max, expiry, ends, pend, gen, leaving, count, from = string.match(
    text, "^(%d+) (%d+) (%d+) (%d+) (%d+) (%d) (%d+) ()")
  local i = {
    max = tonumber(max), expiry = tonumber(expiry), ends = tonumber(ends), pend = tonumber(pend),
    gen = tonumber(gen), leaving = leaving == "1", claims = {},
  }
  for n = 1, tonumber(count) do
    i.claims[n], from = string.match(text, "^(%S+) ()", from)
  end
  i.reason = string.sub(text, from)
  i.listed = not i.leaving and i.ends == 0 and #i.claims < i.max
  i.was = { ends = i.ends, expiry = i.expiry, leased = #i.claims > 0, leaving = i.leaving }
  return i
end
local function record(text)
  local size, at = string.match(text, "^(%d+):()")
  if not size then
    return nil
  end
  local node = string.sub(text, at, at + size - 1)
  local phase, ticket, fence, granted, limit, tail, weight, kind, wait, lease, max = string.match(
    text, "^(%a) (%d+) (%d+) (%d+) (%d+) ((%d+) (%a) (%d+) (%d+) (%d+) .*)$", at + size)
  return {
    node = node, phase = phase, ticket = ticket, fence = fence, granted = granted, limit = tonumber(limit),
    tail = tail, weight = tonumber(weight), kind = kind, wait = tonumber(wait), lease = tonumber(lease),
    max = tonumber(max),
  }
end
local function wants(tail)
  local from = string.match(tail, "^%d+ %a %d+ %d+ %d+ %-?%d+ ()")
  local size, after
  for _ = 1, 4 do
    size, after = string.match(tail, "^(%d+):()", from)
    from = after + size
  end
  local policy, kind, cooldown, bindfor, bind = string.match(
    string.sub(tail, after, from - 1), "^(%a) (%a) (%d+) (%d+) (.*)$")
  return {
    policy = policy, shared = kind == "s", cooldown = tonumber(cooldown), bindfor = tonumber(bindfor), bind = bind,
  }
end
local at, st, _, newer = pool(KEYS, "0", "", "")
if newer then
  return { "incompatible", newer }
end
local part, cursor, count, band, p = ARGV[1], ARGV[2], ARGV[3], bands(), st.pool
local entries = redis.call("HLEN", at.state) + redis.call("ZCARD", at.line) + redis.call("HLEN", at.items)
  + redis.call("HLEN", at.free) + redis.call("HLEN", at.bindings)
local whole = p.resources <= tonumber(ARGV[4]) and entries <= 10 * tonumber(ARGV[4])
local seen = { resources = 0, free = 0, leased = 0, resting = 0, leaving = 0, bindings = 0, walked = 0, linked = 0,
  holds = 0, places = 0 }
local problems = {}
local function problem(word, about)
  if #problems < 200 then
    problems[#problems + 1], problems[#problems + 2] = word, about
  end
end
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
  read(at.free, redis.call("HGETALL", at.free))
  read(at.bindings, redis.call("HGETALL", at.bindings))
  read(at.line, redis.call("ZRANGE", at.line, 0, -1, "WITHSCORES"))
end
local function get(key, field)
  if whole then
    return known[key].map[field] or nil
  end
  return redis.call("HGET", key, field) or nil
end
local function score(member)
  return tonumber(whole and known[at.line].map[member] or not whole and redis.call("ZSCORE", at.line, member) or nil)
end
local function page(key)
  if whole then
    return known[key].list, "0"
  end
  local reply = key == at.line and redis.call("ZSCAN", key, cursor, "COUNT", count)
    or redis.call("HSCAN", key, cursor, "COUNT", count)
  return reply[2], reply[1]
end
local function check_item(key, i)
  local n, before = get(at.free, "n" .. key), get(at.free, "p" .. key)
  seen.resources = seen.resources + 1
  seen.free = seen.free + (i.listed and 1 or 0)
  seen.leased = seen.leased + (i.was.leased and 1 or 0)
  seen.resting = seen.resting + (i.ends > 0 and 1 or 0)
  seen.leaving = seen.leaving + (i.leaving and 1 or 0)
  if i.listed and not (n and before) then
    problem("unlisted", key)
  elseif not i.listed and (n or before) then
    problem(i.was.leased and "both" or "listed", key)
  elseif i.listed and (get(at.free, "p" .. n) ~= key or get(at.free, "n" .. before) ~= key) then
    problem("link", key)
  end
  if (score("e:" .. key) or band.rest) ~= band.rest + i.ends then
    problem("rest", key)
  end
  if (score("x:" .. key) or band.expiry) ~= band.expiry + (i.leaving and 0 or i.expiry) then
    problem("expiry", key)
  end
  if i.leaving and not i.was.leased then
    problem("left", key)
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
      check_item(key, item(at, key, list[n + 1]))
    end
  end
  return to ~= "0" and "items" or "bindings", to
end
function steps.bindings()
  local list, to = page(at.bindings)
  for n = 1, #list, 2 do
    if string.sub(list[n], 1, 1) == "b" then
      local name, ends = string.sub(list[n], 2), tonumber(string.match(list[n + 1], "^%d+"))
      seen.bindings = seen.bindings + 1
      if (score("u:" .. name) or band.bind + band.forever) ~= band.bind + ends then
        problem("binding", name)
      end
    end
  end
  return to ~= "0" and "bindings" or "walk", to ~= "0" and to or ""
end
function steps.walk()
  local key = cursor
  for _ = 1, whole and p.resources + 1 or tonumber(count) do
    key = get(at.free, "n" .. key)
    if not key or key == "" then
      return "links", "0"
    end
    seen.walked = seen.walked + 1
  end
  if whole then
    problem("circle", key)
    return "links", "0"
  end
  return "walk", key
end
function steps.links()
  local list, to = page(at.free)
  for n = 1, #list, 2 do
    local key = string.sub(list[n], 2)
    if string.sub(list[n], 1, 1) == "n" and key ~= "" then
      seen.linked = seen.linked + 1
      if not get(at.items, "i" .. key) then
        problem("link_orphan", key)
      end
    end
  end
  return to ~= "0" and "links" or "line", to
end
function steps.line()
  local list, to = page(at.line)
  for n = 1, #list, 2 do
    local kind, about = string.sub(list[n], 1, 1), string.sub(list[n], 3)
    if kind == "h" then
      seen.holds = seen.holds + 1
    elseif kind == "q" then
      seen.places = seen.places + 1
    end
    if (kind == "e" or kind == "x") and not get(at.items, "i" .. about)
      or kind == "u" and not get(at.bindings, "b" .. about)
      or (kind == "h" or kind == "a" or kind == "q" or kind == "t") and not get(at.state, "c:" .. about)
      or kind == "h" and not get(at.state, "r:" .. about) then
      problem("line_orphan", list[n])
    end
  end
  return to ~= "0" and "line" or "state", to
end
function steps.state()
  local list, to = page(at.state)
  for n = 1, #list, 2 do
    local kind, claim = string.sub(list[n], 1, 2), string.sub(list[n], 3)
    local r = kind == "c:" and record(list[n + 1])
    if r and not score("h:" .. claim) and not score("a:" .. claim) then
      problem("claim_orphan", claim)
    elseif kind == "r:" then
      local text = get(at.state, "c:" .. claim)
      r = text and record(text)
      local i = item(at, list[n + 1])
      local holds = r and wants(r.tail).shared
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
  "part", part, cursor, p.moves, p.resources, p.free, p.leased, p.leaving, st.used, st.waiting,
  seen.resources, seen.free, seen.leased, seen.resting, seen.leaving, seen.bindings, seen.walked, seen.linked,
  seen.holds, seen.places,
}
for _, field in ipairs(problems) do
  reply[#reply + 1] = field
end
return reply

