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
local function record_read(text)
  local alive, ticket, place, node, terms, secret, weight, kind, wait, lease, max
  local phase, number, wanted, fence, granted, limit = string.sub(text, 1, 1), "", "", "0", "0", 0
  if phase == "w" then
    alive, ticket, node, terms, secret, weight, kind, wait, lease, max =
      string.match(text, "^w 0*(%d+) %d+ (%d+) (%S+) ((%S+) (%d+) (%a) (%d+) (%d+) (%d+) .*)$")
    place = ticket
  elseif phase == "p" then
    alive, ticket, place, node, terms, secret, weight, kind, wait, lease, max =
      string.match(text, "^p 0*(%d+) %d+ (%d+) (%d+) (%S+) ((%S+) (%d+) (%a) (%d+) (%d+) (%d+) .*)$")
    phase = "w"
  else
    phase, number, wanted, ticket, fence, granted, limit, node, terms, secret, weight, kind, wait, lease, max =
      string.match(text,
        "^(%a)(%d*)(!?%d*) (%d+) (%d+) (%d+) 0*(%d+) (%S+) ((%S+) (%d+) (%a) (%d+) (%d+) (%d+) .*)$")
  end
  if not terms then
    return nil
  end
  return {
    node = node, phase = phase, number = number, wanted = wanted, ticket = ticket, fence = fence, granted = granted,
    place = place or fence, alive = (alive or 0) + 0, limit = limit + 0, terms = terms, weight = weight + 0,
    secret = secret, kind = kind, wait = wait + 0, lease = lease + 0, max = max + 0,
  }
end
local function pool_open(keys, linger, channel, name, claim, t, v, top)
  if not t then
local function fetch(keys, claim, ...)
  local time, members = redis.call("TIME"), redis.call("ZRANGE", keys[2], "0", "1")
  local thin = not members[1] and redis.call("MGET", keys[1])[1]
  if not thin then
    local fields = redis.pcall("HMGET", keys[1], "v", claim and "c:" .. claim or "c:", ...)
    if not fields.err then
      return time, fields, members[1], members[2]
    end
    thin = redis.call("MGET", keys[1])[1]
    if not thin then
      redis.call("HLEN", keys[1])
    end
  end
  return time, { false, false, false, thin = thin }, members[1]
end
    t, v, top = fetch(keys, claim, "pool", "r:" .. (claim or ""))
  end
  if v.thin then
    redis.call("HLEN", keys[1])
  end
local function pool_counts(text, used)
  if not text then
    return {
      resources = 0, free = 0, leased = 0, leaving = 0, gen = 0, parked = 0, filled = false, settings = ("- - - - - - -"),
    }
  end
  local resources, gen, apart, others, parked, leaving, filled, settings = string.match(text, ("^(%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d) (%S %S %S.*)$"))
  return resources and {
    resources = resources - (1000000000000000), free = resources - (1000000000000000) - used - (apart - (2000000000000000)),
    leased = used + apart - others, leaving = leaving - (1000000000000000), gen = gen + 0,
    parked = parked - (1000000000000000), filled = filled == "1", settings = settings,
  } or nil
end
local function open(keys, linger, channel, name, claim, t, v, top)
local function now(t)
  local seconds, micros = t[1] + 0, t[2] + 0
  return seconds * 1000 + (micros - micros % 1000) / 1000, seconds * 1000000 + micros
end
  local ms, us = now(t)
  local known, st, newer = v[2]
  if top == false then
    top = redis.call("ZRANGE", keys[2], "0", "0")[1]
  end
local function load(text)
  local fmt, fence, exp, due, ticket, busy, used, waiting, cap, few = string.match(text or "", ("^(%d+) 0*(%d+) 0*(%d+) 0*(%d+) 0*(%d+) 0*(%d+) (%d+) (%d+) (%d+) (%-?%d+ %-?%d+ %d+ %d+ %d+ %d+)$"))
  local capacity, until_then = cap and cap - (1000000000000000) or 0, (exp or 0) + 0
  local st = {
    fmt = (fmt or 0) + 0, fence = (fence or 0) + 0, exp = until_then,
    due = due ~= ("9999999999999") and (due or 0) + 0 or 0,
    ticket = (ticket or 0) + 0, busy = (busy or 0) + 0, cap = capacity, used = used and used - (1000000000000000) or 0,
    waiting = waiting and waiting - (1000000) or 0,
    gone = 0, forever = 0, keep = 0, pause = 0, look = 0, rev = 0,
    was_used = used and used - (1000000000000000) or 0, was_cap = capacity, was_exp = until_then, was_rev = 0,
    was_never = false, form = fmt and "fat",
  }
  if few and few ~= ("0 0 0 0 0 0") then
    local keep, rev = string.match(few, ("^0 0 (%d+) 0 0 (%d+)$"))
    if keep then
      st.keep, st.rev = keep + 0, rev + 0
    else
      local gone, forever, pause, look
      gone, forever, keep, pause, look, rev = string.match(few, ("^(%-?%d+) (%-?%d+) (%d+) (%d+) (%d+) (%d+)$"))
      st.gone, st.forever, st.keep = gone + 0, forever + 0, keep + 0
      st.pause, st.look, st.rev = pause + 0, look + 0, rev + 0
    end
    st.was_rev, st.was_never = st.rev, st.forever > 0 or st.keep > 0
  end
  if text and (st.fmt < (3) or st.fmt > (3)) then
    local number = tonumber(string.match(text, ("^%d+")) or 0)
    return st, (number < (3) or number > (3)) and number or 0
  end
  return st
end
  if v.thin then
local function thin_open(state, text, ms)
local function thin_read(text, ms)
  local st = load(false)
  local number = string.match(text, ("^f(%d+) "))
  if number then
    return st, tonumber(number)
  end
  local fence, since, claim, node, terms = string.match(text, ("^(%d+) (%d+) ((%S+)%.[^%s.]+) (%S+ 1 .*)$"))
  local weight, _, lease, max = string.match(terms or "", ("^%S+ (%d+) %a (%d+) (%d+) (%d+) "))
  if not claim and string.find(text, ("^%d+ %d+ %S+ 1 %S+ %a %d+ ")) then
    return st, 2
  end
  if claim and (#fence ~= 16 or #since ~= 13 or not weight) or not claim and not string.find(text, ("^%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d$")) then
    return nil
  end
  st.fmt, st.form, st.cap, st.was_cap = (3), "thin", 1, 1
  st.fence = string.sub(text, 1, (17) - 1) + 0
  if claim then
    local granted, held, limit = string.sub(text, 1, (13)), since + lease, 0
    if max ~= "0" then
      limit = granted + max
      held = math.min(held, limit)
    end
    st.thin = { claim = claim, node = node, granted = granted, terms = terms, held = held, limit = limit }
    if held > ms then
      st.used, st.due = 1, held
    end
  end
  return st
end
  local st, newer = thin_read(text, ms)
  if not st then
    redis.call("HLEN", state)
  end
  return st, newer
end
    st, newer = thin_open(keys[1], v.thin, ms)
    if st.thin and st.thin.claim == claim then
local function thin_record(st)
  local hold = st.thin
  if not hold.r then
    hold.text = string.format(("h %s %016d %s %013d "), hold.granted, st.fence, hold.granted, hold.limit) .. hold.node .. " "
      .. hold.terms
    hold.r = record_read(hold.text)
    hold.r.held = hold.held
  end
  return hold
end
      known = thin_record(st).text
    end
  else
    st, newer = load(v[1])
    if st.form and not top then
      st.used, st.waiting, st.gone, st.forever, st.due, st.look = 0, 0, 0, 0, 0, 0
    elseif not st.form and not newer then
      newer = tonumber(redis.call("HGET", keys[1], "fmt") or nil)
    end
    if st.pause <= ms then
      st.pause = 0
    end
  end
  return {
    state = keys[1], line = keys[2], linger = linger + 0, channel = channel, name = name,
    ms = ms, us = us, head = top, newer = newer,
  }, st, known
end
  local at, st, known = open(keys, linger, channel, name, claim, t, v, top)
  at.items, at.free, at.bindings = keys[3], keys[4], keys[5]
  at.others = { at.items, at.free, at.bindings }
  st.pool, st.counts = pool_counts(v[3], st.was_used), v[3]
  at.newer = at.newer or not st.pool and 0 or nil
  if st.pool and st.form and not at.head then
    st.pool.parked = 0
  end
  st.waiting = math.max(st.waiting, st.pool and st.pool.parked or 0)
  local held = v[4]
  if held == nil and known then
    held = redis.call("HGET", keys[1], "r:" .. claim)
  end
  st.claim, st.extra = claim, held or ""
  return at, st, known
end
local at, st = pool_open(KEYS, "0", "", "")
if at.newer then
  return { "incompatible", at.newer }
end
local part, cursor, count, p = ARGV[1], ARGV[2], ARGV[3], st.pool
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
local function check_damaged(key)
  local rests, leaves = score("e:" .. key), score("x:" .. key)
  seen.resources = seen.resources + 1
  seen.free = seen.free + (score(key, at.free) and 1 or 0)
  seen.resting = seen.resting + (rests and 1 or 0)
  seen.leaving = seen.leaving + (leaves == (264 * 10000000000000) + (9999999999999) and 1 or 0)
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
  if (score("e:" .. key) or (262 * 10000000000000)) ~= (262 * 10000000000000) + i.ends then
    problem("rest", key)
  end
  if (score("x:" .. key) or (264 * 10000000000000)) ~= (264 * 10000000000000) + (i.leaving and (9999999999999) or i.expiry) then
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
local function item_read(at, key, text)
  text = text or redis.call("HGET", at.items, "i" .. key)
  if not text then
    return nil
  end
  local max, expiry, ends, pend, rev, flags, count, from = string.match(
    text, "^(%d+) (%d+) (%d+) (%d+) (%d+) ([0-3]) (%d+) ()")
  if not from then
    return nil, true
  end
  local i, most = {
    max = max + 0, expiry = expiry + 0, ends = ends + 0, pend = pend + 0, rev = rev + 0,
    leaving = flags == "1" or flags == "3", own = flags + 0 > 1, claims = {}, reason = "", listed = false, was = false,
  }, (9999999999999)
  if i.max == 0 or i.max > most or i.expiry > most or i.ends > most or i.pend > most or i.rev > most then
    return nil, true
  end
  for n = 1, count + 0 do
    i.claims[n], from = string.match(text, "^(%S+) ()", from)
    if not from then
      return nil, true
    end
  end
  i.reason = string.sub(text, from)
  i.listed = not i.leaving and i.ends == 0 and #i.claims < i.max
  i.was = { ends = i.ends, expiry = i.expiry, leased = #i.claims > 0, leaving = i.leaving }
  return i
end
local function wants_read(terms)
local function record_extra(terms)
  local extra = string.match(terms, ("^%S+ %d+ %a %d+ %d+ %d+ %-?%d+ 0:0:0:%d+:(.*)$"))
  if extra then
    return extra
  end
  local from = string.match(terms, "^%S+ %d+ %a %d+ %d+ %d+ %-?%d+ ()")
  local size, after
  for _ = 1, 4 do
    size, after = string.match(terms, "^(%d+):()", from)
    from = after + size
  end
  return string.sub(terms, after, from - 1)
end
  local extra = record_extra(terms)
  local kind, cooldown, bindfor, patience, size, from = string.match(extra, "^(%a) (%d+) (%S+) (%d+) (%d+):()")
  return {
    shared = kind == "s", alone = kind == "a", cooldown = tonumber(cooldown),
    bindfor = tonumber(bindfor), patience = tonumber(patience),
    resource = size ~= "0" and string.sub(extra, from, from + size - 1) or nil,
    bind = string.sub(extra, from + size),
  }
end
local function binding_parse(text)
  local ends, key = string.match(text or "", "^(%d+) (.*)$")
  return tonumber(ends), key
end
local function audit_lane(at, key, number, score, problem)
  local i, bad = item_read(at, key)
  local mark = score("w:" .. key)
  local left_over, there = mark and mark <= (258 * 10000000000000) + at.ms, i and not i.leaving
local function lane_first(at, key, number)
  local member = redis.call("ZRANGEBYSCORE", at.line, number, number, "LIMIT", "0", "1")[1]
  local place, claim = string.match(member or "", ("^(%d+)%-(.+)$"))
  if not claim then
    return nil
  end
  local texts = redis.call("HMGET", at.state, "c:" .. claim, "q:" .. claim)
  if select(2, string.match(texts[2] or "", ("^(%S+) (.*)$"))) == key then
    return place, claim, texts[1]
  end
end
  if not lane_first(at, key, number) then
    problem("lane_empty", key)
  elseif left_over or bad then
    return
  elseif there and i.listed then
    problem("lane_free", key)
  elseif there then
local function item_moment(i)
  local rest = i.ends > 0 and i.ends < (9999999999999) and i.ends or nil
local function least(a, b)
  return a and b and math.min(a, b) or a or b
end
  return least(rest, i.expiry > 0 and i.expiry or nil)
end
    if (mark or (258 * 10000000000000)) ~= (258 * 10000000000000) + (item_moment(i) or 0) then
      problem("lane_mark", key)
    end
  elseif not mark then
    problem("lane_absent", key)
  end
end
local function audit_member(at, claim, text, get, score, problem)
  local ends, key = string.match(text, ("^(%S+) (.*)$"))
  local known = get(at.state, "c:" .. claim)
  local r, number = known and record_read(known), key and get(at.state, "l:" .. key)
  local patience = ends and ends ~= ("-") and ends ~= "0" and (257 * 10000000000000) + ends or nil
  if not r or r.phase ~= "w" or #r.place ~= (16) or not number
    or score(r.place .. ("-") .. claim) ~= number + 0 or score("p:" .. claim) ~= patience then
    problem("lane_member", claim)
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
      if not ends or (score("u:" .. name) or (266 * 10000000000000) + (9999999999999)) ~= (266 * 10000000000000) + ends then
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
    local place, waits = string.match(list[n], ("^(%d+)%-(.+)$"))
    if kind == "h" then
      seen.holds = seen.holds + 1
    elseif place then
      seen.places, seen.parked = seen.places + 1, seen.parked + (#place == (16) and 1 or 0)
    end
    local bad = kind == "d" and select(2, item_read(at, about))
    if kind == "o" and not get(at.state, list[n])
      or (kind == "e" or kind == "x") and not get(at.items, "i" .. about)
      or kind == "u" and not get(at.bindings, "b" .. about)
      or (waits or kind == "h" or kind == "t") and not get(at.state, "c:" .. (waits or about))
      or kind == "h" and not get(at.state, "r:" .. about) or kind == "w" and not get(at.state, "l:" .. about)
      or (kind == "p" or place and #place == (16)) and not get(at.state, "q:" .. (waits or about))
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
      i, bad = item_read(at, claim)
    end
    if not bad and not (i and i.own) then
      problem("settings", claim)
    elseif r and not score("h:" .. claim) and not score(r.place .. ("-") .. claim) then
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
local function pool_counts_write(p, used)
  local kept = (2000000000000000) + p.resources - p.free
  return string.format(("%d %013d %d %d %d %d %d "), (1000000000000000) + p.resources, p.gen, kept - used, kept - p.leased,
    (1000000000000000) + p.parked, (1000000000000000) + p.leaving, p.filled and 1 or 0) .. p.settings
end
local reply = {
  "part", part, cursor, table.concat({ (string.format("%d", (st.fence))), (string.format("%d", (st.ticket))), st.used, st.waiting, st.rev,
  pool_counts_write(p, st.used) }, " "),
  p.resources, p.free, p.leased, p.leaving, st.used, st.waiting, p.parked,
  seen.resources, seen.free, seen.leased, seen.resting, seen.leaving, seen.bindings, seen.listed,
  seen.holds, seen.places, seen.parked,
}
for _, field in ipairs(problems) do
  reply[#reply + 1] = field
end
return reply
