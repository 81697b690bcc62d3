--[[
pool_restore: a node's waiting claims that the server no longer knows stand where they stood.
KEYS[1] state (HASH v -> values, c:claim -> record, r:claim -> resource, s:resource -> settings)
KEYS[2] line (ZSET place-claim, h:, t:claim, e:, x:, d:resource, u:binding, - -> score, see state/score)
KEYS[3] items (HASH i:resource -> item)
KEYS[4] free (ZSET resource -> its turn)
KEYS[5] bindings (HASH b:name -> end, resource)
ARGV[1] linger (ms)    ARGV[2] channel prefix    ARGV[3] name    ARGV[4] node
ARGV[5] capacity, if none is stored: 1
ARGV[6...] x3: claim id, place, record with its ticket
RETURNS {"restored", next_ms, flags, setting, held, waiting, ...} | {"incompatible", format}
REPLAY a claim that is known stays as it is    COST O(log n) a claim + at most 100 drops and grants
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
local at, st = pool_open(KEYS, ARGV[1], ARGV[2], ARGV[3])
local function restore(at, st, node, cap, claims)
  if at.newer then
    return { "incompatible", at.newer }
  end
  st.cap = st.cap == 0 and cap or st.cap
  local waiting, used = st.waiting, st.used
  local reply = { "restored", -1, 0, 0, 0, 0 }
  local budget, furthest, sooner, head_left, waits = { left = 100, swept = 0 }, nil, nil, false, {}
local function record_write(r)
  if r.phase ~= "w" then
    return r.phase .. r.number .. r.wanted .. " " .. r.ticket .. " " .. r.fence .. " " .. r.granted .. " "
      .. (r.limit == 0 and ("0000000000000") or string.format("%013d", r.limit)) .. " " .. r.node .. " " .. r.terms
  end
  local lives = string.format("%013d %013d ", r.alive, r.alive - math.floor(r.wait / 2))
  local place = r.place == r.ticket and "" or r.place .. " "
  return (place == "" and "w " or "p ") .. lives .. r.ticket .. " " .. place .. r.node .. " " .. r.terms
end
local function record_sums(text)
  local phase, terms, weight, lease, max = string.match(text or "",
    "^(%a)[%d! ]+ %S+ (%S+ (%d+) %a %d+ (%d+) (%d+) .*)$")
  if not terms then
    return 0, 0, nil
  end
  return weight + 0, lease == "0" and max == "0" and not string.find("gwp", phase, 1, true) and 1 or 0, terms
end
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
local function settings_of(st)
  local p = st.pool
  if p.settings == ("- - - - - - -") then
    return {}
  elseif p.set_of ~= p.settings then
    local _, policy, cooldown, sharers, bindfor, lease, hold = string.match(p.settings, ("^(%S) (%S) (%S+) (%S+) (%S+) (%S+) (%S+)$"))
    p.set_of, p.set = p.settings, {
      policy = policy ~= "-" and policy or nil, cooldown = tonumber(cooldown), sharers = tonumber(sharers),
      bindfor = tonumber(bindfor), lease = tonumber(lease), hold = tonumber(hold),
    }
  end
  return p.set
end
local function settings_own(at, key, i)
  if not i.own then
    return nil, nil, nil
  end
  local cooldown, sharers, bindfor = string.match(redis.call("HGET", at.state, "s:" .. key) or "", ("^(%S+) (%S+) (%S+)$"))
  return tonumber(cooldown), tonumber(sharers), tonumber(bindfor)
end
local function free_push(at, st, key)
  st.fence = math.max(st.fence + 1, at.us)
  redis.call("ZADD", at.free, (string.format("%d", (st.fence))), key, ("9007199254740991"), "")
end
local function free_drop(at, key)
  local dropped = redis.call("ZREM", at.free, key)
  return dropped == 1
end
local function wants_back(terms)
  local kind, cooldown = string.match(record_extra(terms), ("^(%a) (%d+) "))
  return { shared = kind == "s", alone = kind == "a", cooldown = tonumber(cooldown) }
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
local function lane_touch(at, st, key)
  local known = st.touched and st.touched[key]
  local number = not known and ((st).pool.parked > 0 and redis.call("HGET", (at).state, "l:" .. (key)) or nil)
  if number then
    st.touched = st.touched or {}
    known = { key = key, number = number }
    st.touched[key], st.touched[#st.touched + 1] = known, known
  end
  if known then
    known.dirty, known.order = true, nil
  end
end
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
local function lane_end(at, st, key)
  redis.call("HDEL", at.state, "l:" .. key)
  redis.call("ZREM", at.line, "w:" .. key)
  if st.touched and st.touched[key] then
    st.touched[key].over, st.touched[key] = true, nil
  end
end
local function lane_leave(at, st, claim, place, absent)
  if #place ~= (16) then
    return
  end
  local text = redis.call("HGET", at.state, "q:" .. claim)
  local ends, key = string.match(text or "", ("^(%S+) (.*)$"))
  if not absent then
    st.pool.parked = math.max(st.pool.parked - 1, 0)
  end
  if not key then
    return
  end
  redis.call("HDEL", at.state, "q:" .. claim)
  if ends ~= ("-") and ends ~= "0" then
    redis.call("ZREM", at.line, "p:" .. claim)
  end
  local number = redis.call("HGET", at.state, "l:" .. key)
  if number and not lane_first(at, key, number) then
    lane_end(at, st, key)
  else
    lane_touch(at, st, key)
  end
end
local function settle(at, st, key, i)
  local p, was, leased = st.pool, i.was, #i.claims > 0
  local gone = i.leaving and not leased
  local listed = not i.leaving and i.ends == 0 and #i.claims < i.max
  if i.ends ~= was.ends and i.ends > 0 and not gone then
    redis.call("ZADD", at.line, (string.format("%d", ((262 * 10000000000000) + i.ends))), "e:" .. key)
  elseif was.ends > 0 and (gone or i.ends == 0) then
    redis.call("ZREM", at.line, "e:" .. key)
  end
  local leaves = gone and 0 or i.leaving and (9999999999999) or i.expiry
  local left = was.leaving and (9999999999999) or was.expiry
  if leaves == 0 and left > 0 then
    redis.call("ZREM", at.line, "x:" .. key)
  elseif leaves > 0 and leaves ~= left then
    redis.call("ZADD", at.line, (string.format("%d", ((264 * 10000000000000) + leaves))), "x:" .. key)
  end
  if gone then
    redis.call("HDEL", at.items, "i" .. key)
    if i.own then
      redis.call("HDEL", at.state, "s:" .. key)
    end
    p.resources = p.resources - 1
  else
    redis.call("HSET", at.items, "i" .. key, (string.format("%d %d %d %d %d %d %d ", (i).max, (i).expiry, (i).ends, (i).pend, (i).rev,
    ((i).leaving and 1 or 0) + ((i).own and 2 or 0), #(i).claims)
    .. ((i).claims[1] and table.concat((i).claims, (" ")) .. (" ") or "") .. (i).reason))
  end
  if i.listed and not listed then
    free_drop(at, key)
    p.free = p.free - 1
  elseif listed and not i.listed then
    free_push(at, st, key)
    p.free = p.free + 1
  end
  p.leased = p.leased + (leased and 1 or 0) - (was.leased and 1 or 0)
  p.leaving = p.leaving + (i.leaving and not gone and 1 or 0) - (was.leaving and 1 or 0)
  lane_touch(at, st, key)
  i.listed, was.ends, was.expiry, was.leased, was.leaving = listed, i.ends, i.expiry, leased, i.leaving
end
local function damaged(at, st, key, ended)
  local p = st.pool
  local known = tonumber(redis.call("ZSCORE", at.line, "d:" .. key))
  local score = known or (268 * 10000000000000)
  if ended and (score - (268 * 10000000000000)) % 2 == 0 then
    p.leased, score = math.max(p.leased - 1, 0), score + 1
  end
  if score ~= known then
    redis.call("ZADD", at.line, (string.format("%d", (score))), "d:" .. key)
  end
  local listed = free_drop(at, key)
  p.free = listed and p.free - 1 or p.free
  st.met = st.met or not known
  return listed
end
local function release_resource(at, st, claim, key, w, from, rest, reason, expiry)
  redis.call("HDEL", at.state, "r:" .. claim)
  local i, bad = item_read(at, key)
  if bad then
    damaged(at, st, key, not (w and w.shared))
    return true, nil
  elseif not i then
    return false, nil
  end
local function remove_claim(at, i, claim, ends, reason)
  local count, rests = #i.claims, nil
  for n = count, 1, -1 do
    if i.claims[n] == claim then
      table.remove(i.claims, n)
    end
  end
  if #i.claims == count then
    return false, nil
  end
  if i.pend > 0 then
    local until_then = at.ms + i.pend
    if until_then > ends then
      ends, reason = until_then, i.reason
    end
    i.pend = 0
  end
  if i.expiry > 0 and i.expiry <= at.ms then
    i.leaving = true
  elseif ends > at.ms and ends > i.ends then
    i.ends, i.reason = math.min(ends, (9999999999999)), reason
    rests = i.ends
  end
  if i.ends == 0 then
    i.reason = ""
  end
  return true, rests
end
local function cooldown_end(at, st, key, i, w, from, rest, reason)
local function cooldown_of(at, st, key, i, w)
  local asked = w and w.cooldown or 0
  if w and w.alone then
    return asked
  end
  local own = settings_own(at, key, i)
  return math.max(asked, own or settings_of(st).cooldown or 0)
end
  local cooldown = cooldown_of(at, st, key, i, w)
  local ends = cooldown > 0 and from + cooldown or 0
  if rest > 0 and at.ms + rest >= ends then
    return at.ms + rest, reason
  end
  return ends, ""
end
  local was_there, rests = remove_claim(at, i, claim, cooldown_end(at, st, key, i, w, from, rest, reason))
  if was_there and expiry > 0 and not i.leaving then
    i.expiry = math.min(at.ms + expiry, (9999999999999) - 1)
  end
  if was_there then
    settle(at, st, key, i)
  end
  return not i.leaving, rests
end
local function hold_ends(at, st, claim)
  if st and st.form == "thin" then
    return st.thin and st.thin.claim == claim and st.thin.held or nil
  end
  local score = tonumber(redis.call("ZSCORE", at.line, "h:" .. claim))
  return score and score - (10000000000000)
end
local function first(line)
  local head = redis.call("ZRANGE", line, "0", "0", "WITHSCORES")
  local place, claim = string.match(head[1] or "", ("^(%d+)%-(.+)$"))
  if claim and head[2] + 0 <= (511) then
    return claim, place, tonumber(head[2])
  end
  return nil
end
local function leave(at, st, claim, r, deadline, word, stays, wish)
  local absent = false
  if deadline then
    redis.call("ZREM", at.line, "h:" .. claim)
    st.used, st.due = st.used - r.weight, deadline ~= st.due and st.due or nil
    st.forever = st.forever - ((r).lease == 0 and (r).max == 0 and (r).phase ~= "g" and (r).phase ~= "w" and 1 or 0)
  elseif redis.call("ZREM", at.line, r.place .. ("-") .. claim) > 0 then
    st.waiting = st.waiting - 1
  else
local function recount(at, st)
  if st.recounted then
    return
  end
  st.recounted, st.due = true, nil
  st.waiting = redis.call("ZCOUNT", at.line, "0", ("9999999999999"))
  if st.pool then
    st.pool.parked = redis.call("ZCOUNT", at.line, ("512"), ("9999999999999"))
  end
  st.gone = redis.call("ZCOUNT", at.line, ("2600000000000000"), ("2609999999999999"))
  local holds = redis.call("ZRANGEBYSCORE", at.line, ("10000000000000"), ("19999999999999"),
    "LIMIT", "0", "101")
  if #holds > 100 then
    return
  end
  st.used, st.forever = 0, 0
  local fields = { "c:" }
  for i, member in ipairs(holds) do
    fields[i] = "c:" .. string.sub(member, 3)
  end
  for _, text in ipairs(redis.call("HMGET", at.state, unpack(fields))) do
    local weight, forever = record_sums(text)
    st.used, st.forever = st.used + weight, st.forever + forever
  end
end
    absent = true
    recount(at, st)
  end
  if not deadline and (true) then
    lane_leave(at, st, claim, r.place, absent)
  end
  if word then
local function add_tombstone(at, st, claim, stays)
  redis.call("ZADD", at.line, (string.format("%d", ((260 * 10000000000000) + at.ms + stays))), "t:" .. claim)
  st.gone = st.gone + 1
end
    redis.call("HSET", at.state, "c:" .. claim, ("!") .. word)
    add_tombstone(at, st, claim, stays)
  else
    redis.call("HDEL", at.state, "c:" .. claim)
  end
  if (true) then
local function holding_end(at, st, claim, r, deadline, wish)
local function holding_of(at, st, claim)
  if claim == st.claim then
    return st.extra ~= "" and st.extra or nil
  end
  return redis.call("HGET", at.state, "r:" .. claim) or nil
end
  local key = holding_of(at, st, claim)
  if not key then
    return 1
  end
  local heard = wish and deadline and deadline > at.ms and tonumber(r.fence) == tonumber(wish.fence)
  local rest = heard and wish.rest or 0
  local from, reason = math.min(at.ms, deadline or at.ms), rest > 0 and wish.reason or ""
  local stays, rests = release_resource(at, st, claim, key, wants_back(r.terms), from, rest, reason,
    heard and wish.expiry or 0)
  return stays and 1 or 0, nil, rests
end
    return holding_end(at, st, claim, r, deadline, wish)
  end
end
local function restore_claim(at, st, node, claim, standing, text)
  local r, hold = record_read(text), st.thin
  local known = hold and hold.claim == claim and thin_record(st).text
  if st.form == "fat" then
    known = redis.call("HGET", at.state, "c:" .. claim)
  end
  local sooner, head_left = nil, false
  if known then
    local was = record_read(known)
    if not was then
      return string.match(known or "", ("^!(.*)$")) or ""
    elseif was.node ~= node then
      return "taken"
    end
    local held = hold_ends(at, st, claim)
    if held and held > at.ms then
      return "held"
    elseif not held and was.alive > at.ms
      and redis.call("ZSCORE", at.line, was.place .. ("-") .. claim) then
      return "waiting", nil, nil, nil, was
    end
    if st.form == "fat" then
      local _
      if not held and first(at.line) == claim then
        head_left = true
      end
      _, _, sooner = leave(at, st, claim, was, held)
    end
  end
  if (false) and (false)(st, r) then
    return "too_heavy", nil, sooner, head_left
  end
  local word
  local lane, place, apart = string.match(standing, ("^(%d+) (%d+) ?(.*)$"))
  if apart ~= "" and (true) then
local function apart_rejoin(at, st, apart)
  local ends, key = string.match(apart, ("^(%S+) (.*)$"))
local function item_there(at, key)
  local i, bad = item_read(at, key)
  return bad or ((i) and not (i).leaving and ((i).expiry == 0 or (i).expiry > (at).ms))
end
  if not key or ends ~= ("-") and ends ~= "0" and ends - at.ms <= 0 then
    return nil, ""
  elseif not st.form or not st.pool.filled or item_there(at, key) then
    return nil, apart
  elseif ends == ("-") then
    return "absent"
  end
  return nil, ""
end
    word, apart = apart_rejoin(at, st, apart)
    if word then
      return word, nil, sooner, head_left
    end
  end
local function fatten(at, st, grows, claim)
  if st.form == "fat" and at.head then
    return
  end
  local hold, anew = st.thin, st.form == "thin" or st.form and not st.pool
  if hold and st.used == 0 then
    hold = hold.claim == claim and hold
    st.used, st.due = hold and 1 or 0, hold and hold.held or 0
  end
  local members = { ("9007199254740991"), "-" }
  if hold then
    members[3], members[4] = (string.format("%d", ((10000000000000) + hold.held))), "h:" .. hold.claim
  end
  if grows then
    redis.call("ZADD", at.line, unpack(members))
  end
  if anew then
    redis.call("DEL", at.state)
  else
    redis.call("HDEL", at.state, "c:")
  end
  if at.head then
    redis.call("UNLINK", at.line)
  end
  if not grows or at.head then
    redis.call("ZADD", at.line, unpack(members))
  end
  if hold then
    redis.call("HSET", at.state, "c:" .. hold.claim, thin_record(st).text)
    st.exp = math.ceil((hold.held + at.linger) / 1000) * 1000
  end
  if (true) and not st.form then
local function pool_fresh(at)
  for _, key in ipairs(at.others) do
    if (key == at.free and redis.call("ZCARD", key) or redis.call("HLEN", key)) > 0 then
      redis.call("UNLINK", key)
    end
  end
  redis.call("HSET", at.items, "v", ("-----------------------------------------------------------------"))
  redis.call("ZADD", at.free, ("9007199254740991"), "", ("9007199254740991"), ("-----------------------------------------------------------------"))
  redis.call("ZREM", at.free, ("-----------------------------------------------------------------"))
  redis.call("ZADD", at.line, ("9007199254740991"), ("-----------------------------------------------------------------"))
  redis.call("ZREM", at.line, ("-----------------------------------------------------------------"))
  redis.call("HSET", at.bindings, "v", "1")
end
    pool_fresh(at)
  end
  st.form, st.thin, st.group_text, at.head = "fat", nil, anew and false or st.group_text, "-"
  st.was_exp, st.was_never, st.busy = 0, false, at.ms
end
  fatten(at, st, true)
  r.phase, r.place, r.alive = "w", place, at.ms + r.wait
  if apart ~= "" then
local function apart_stand(at, st, claim, r, lane, apart)
local function lane_enter(at, st, claim, r, key, ends)
  local number = redis.call("HGET", at.state, "l:" .. key)
  if not number or not lane_first(at, key, number) then
    local last = redis.call("ZREVRANGEBYSCORE", at.line, ("9999999999999"), ("512"), "WITHSCORES",
      "LIMIT", "0", "1")[2]
    number = (string.format("%d", (math.max(tonumber(r.ticket), (512), (tonumber(last) or 0) + 1))))
  end
  redis.call("HSET", at.state, "l:" .. key, number, "q:" .. claim, ends .. (" ") .. key)
  redis.call("ZADD", at.line, number, r.place .. ("-") .. claim)
  if ends ~= ("-") and ends ~= "0" then
    redis.call("ZADD", at.line, (string.format("%d", ((257 * 10000000000000) + ends))), "p:" .. claim)
  end
  st.pool.parked = st.pool.parked + 1
  if st.touched and st.touched[key] then
    st.touched[key].number = number
  end
  lane_touch(at, st, key)
end
  local ends, key = string.match(apart, ("^(%S+) (.*)$"))
  r.place = lane .. r.place
  lane_enter(at, st, claim, r, key, ends)
end
    apart_stand(at, st, claim, r, lane, apart)
  else
    redis.call("ZADD", at.line, lane, place .. ("-") .. claim)
  end
  redis.call("HSET", at.state, "c:" .. claim, record_write(r))
  st.waiting, st.ticket = st.waiting + 1, math.max(st.ticket, tonumber(r.ticket))
  return "waiting", r.alive, sooner, head_left, r
end
  for i = 1, #claims, 3 do
    local word, ends, nearer, first_left, r = restore_claim(at, st, node, claims[i], claims[i + 1], claims[i + 2])
    waits[#waits + 1] = r and { claim = claims[i], r = r }
    reply[#reply + 1], sooner, head_left = word, ((sooner) and (nearer) and math.min((sooner), (nearer)) or (sooner) or (nearer)), head_left or first_left
    furthest = ends and math.max(furthest or 0, ends) or furthest
  end
local function least(a, b)
  return a and b and math.min(a, b) or a or b
end
local function hold_first(at, claims)
  local members, ends = {}, nil
  for n, claim in ipairs(claims) do
    members[n] = "h:" .. claim
  end
  for _, score in ipairs(members[1] and redis.call("ZMSCORE", at.line, unpack(members)) or {}) do
    ends = least(ends, score and score - (10000000000000) or nil)
  end
  return ends
end
local function earliest(at, st)
  if not st.due then
    local hold = st.used > 0 and redis.call("ZRANGEBYSCORE", at.line, ("10000000000000"), ("19999999999998"),
      "WITHSCORES", "LIMIT", "0", "1")[2]
    st.due = hold and tonumber(hold) - (10000000000000) or 0
  end
  return st.due
end
local function soonest(at, st)
  if st.pause > 0 then
    return st.pause
  end
local function kind_moment(at, st)
local function moment_first(at, from)
  local found = redis.call("ZRANGEBYSCORE", at.line, (string.format("%d", (from))), (string.format("%d", (from + (9999999999999) - 1))), "WITHSCORES",
    "LIMIT", "0", "1")
  return found[2] and tonumber(found[2]) - from or nil
end
  local rest = ((st).pool and (st).waiting - (st).pool.parked or (st).waiting) > 0 and moment_first(at, (262 * 10000000000000)) or nil
  if st.pool.parked <= 0 then
    return rest
  end
  return least(rest, least(moment_first(at, (258 * 10000000000000)), moment_first(at, (257 * 10000000000000))))
end
  local low, moment = earliest(at, st), (true) and kind_moment(at, st)
  if low == 0 then
    return moment or false
  end
  return moment and math.min(low, moment) or low
end
local function first_waiter(at)
  local claim = first(at.line)
  return claim, claim and redis.call("HGET", at.state, "c:" .. claim)
end
  if st.form == "fat" then
local function item_moment(i)
  local rest = i.ends > 0 and i.ends < (9999999999999) and i.ends or nil
  return least(rest, i.expiry > 0 and i.expiry or nil)
end
local function leave_place(at, st, claim, place, r)
  if r and r.phase == "w" and r.place == place then
    leave(at, st, claim, r)
  else
    redis.call("ZREM", at.line, place .. ("-") .. claim)
    st.waiting = st.waiting - 1
    if (true) then
      lane_leave(at, st, claim, place)
    end
  end
end
local function lanes_move(at, st, claim)
  local text = redis.call("HGET", at.state, "c:" .. claim)
  local r = text and record_read(text)
  local lane, place = string.match(r and r.phase == "w" and #r.place == (16) and r.place or "", ("^(%d%d%d)(%d+)$"))
  if not lane then
    return
  end
  redis.call("ZREM", at.line, r.place .. ("-") .. claim)
  lane_leave(at, st, claim, r.place)
  r.place = place
  redis.call("ZADD", at.line, lane, place .. ("-") .. claim)
  redis.call("HSET", at.state, "c:" .. claim, record_write(r))
  st.moved = true
end
local function lanes_patience(at, st, budget)
  local most = math.floor(budget.left / 2)
  local claims = redis.call("ZRANGEBYSCORE", at.line, ("2570000000000000"), (string.format("%d", ((257 * 10000000000000) + at.ms))),
    "LIMIT", "0", (string.format("%d", (most + 1))))
  for n = 1, math.min(#claims, most) do
    redis.call("ZREM", at.line, claims[n])
    lanes_move(at, st, string.sub(claims[n], 3))
    budget.left = budget.left - 1
  end
  st.patient, st.halted = true, #claims > most
  st.met = st.met or st.halted
end
local function lanes_head(at, st, lane, budget)
  while budget.left > 0 and not lane.over do
    local place, claim, text = lane_first(at, lane.key, lane.number)
    if not claim then
      lane_end(at, st, lane.key)
      break
    end
    local r = text and record_read(text)
    if r and r.place == place and r.alive > at.ms then
      return claim, r, place
    end
    leave_place(at, st, claim, place, r)
    budget.left, budget.swept = budget.left - 1, budget.swept + 1
  end
end
local function wake(at, node, ...)
  local parts = { ... }
  for i, field in ipairs(parts) do
    field = type(field) == "number" and (string.format("%d", (field))) or field
    parts[i] = string.format("%d:", #field) .. field
  end
  at.out = at.out or {}
  at.out[#at.out + 1], at.out[#at.out + 2] = at.channel .. node, table.concat(parts)
end
local function notify_node(at, r, next_at)
  if next_at <= at.ms or next_at < r.alive - r.wait / 2 then
    wake(at, r.node, "next", at.name, math.max(next_at - at.ms, 0))
    return true
  end
  return false
end
local function lanes_wait(at, st, lane, item, ends, budget)
  if ends then
    redis.call("ZADD", at.line, (string.format("%d", ((258 * 10000000000000) + ends))), "w:" .. lane.key)
  else
    redis.call("ZREM", at.line, "w:" .. lane.key)
  end
  local _, r = lanes_head(at, st, lane, budget)
  local next_at = least(ends ~= (9999999999999) and ends or nil, item and hold_first(at, item.claims))
  if r and next_at and next_at < (9999999999999) then
    notify_node(at, r, next_at)
  end
end
local function expire(at, st, budget)
  local sooner, before = nil, budget.left
  if st.gone > 0 or st.used > 0 and st.form == "fat" and earliest(at, st) <= at.ms then
local function expire_claims(at, st, budget)
  local sooner = nil
local function expired(at, budget, from)
  local members, fields = {}, {}
  if budget.left > 0 then
    members = redis.call("ZRANGEBYSCORE", at.line, (string.format("%d", (from))), (string.format("%d", (from + at.ms))), "LIMIT", "0", (string.format("%d", (budget.left))))
  end
  for i, member in ipairs(members) do
    fields[i] = "c:" .. string.sub(member, 3)
  end
  return members, fields
end
local function expire_drop(at, budget, members, fields)
  redis.call("ZREM", at.line, unpack(members))
  redis.call("HDEL", at.state, unpack(fields))
  budget.left = budget.left - #fields
end
  if st.used > 0 and st.form == "fat" then
    if earliest(at, st) > 0 and st.due <= at.ms then
local function expire_holds(at, st, budget)
  local holds, fields = expired(at, budget, (10000000000000))
  if #holds == 0 then
    return nil
  end
  local records = redis.call("HMGET", at.state, unpack(fields))
  for i, text in ipairs(records) do
    local weight, forever, terms = record_sums(text)
    st.used, st.forever, records[i] = st.used - weight, st.forever - forever, terms or false
  end
  local deadlines, sooner = (true) and redis.call("ZMSCORE", at.line, unpack(holds)), nil
  expire_drop(at, budget, holds, fields)
local function holding_expire(at, st, claim, terms, deadline)
  local key = redis.call("HGET", at.state, "r:" .. claim)
  if not key then
    return nil
  end
  local _, rests = release_resource(at, st, claim, key, terms and wants_back(terms) or nil, deadline, 0, "", 0)
  return rests
end
  for i, member in ipairs((true) and holds or {}) do
    local ends = holding_expire(at, st, string.sub(member, 3), records[i], tonumber(deadlines[i]) - (10000000000000))
    sooner = ends and math.min(sooner or ends, ends) or sooner
  end
  return sooner
end
      sooner, st.due = expire_holds(at, st, budget), nil
    end
    if earliest(at, st) == 0 and not redis.call("ZRANGEBYSCORE", at.line, ("10000000000000"), ("19999999999999"),
      "LIMIT", "0", "1")[1] then
      st.used, st.forever = 0, 0
    end
  end
  local tombs, fields = {}, nil
  if st.gone > 0 then
    tombs, fields = expired(at, budget, (260 * 10000000000000))
  end
  if tombs[1] then
    st.gone = st.gone - #tombs
    expire_drop(at, budget, tombs, fields)
  end
  return sooner
end
    sooner = expire_claims(at, st, budget)
  end
  if (true) then
local function pool_due(at, st, budget)
local function due_last(at)
  local member = redis.call("ZRANGE", at.line, "-2", "-2")[1]
  return string.sub(member or "", 1, 1)
end
  local last = due_last(at)
  if last ~= "d" and not string.find(last, ("[opwtexu]")) then
    return
  end
local function due_first(at, from)
  local member = redis.call("ZRANGEBYSCORE", at.line, from, "+inf", "LIMIT", "0", "1")[1]
  return string.sub(member or "", 1, 1)
end
  local first = due_first(at, ("2560000000000000"))
  if not string.find(first, ("[opwtexu]")) then
    return
  end
  local what = first
  if string.find(last, "[opwt]") then
    what = ""
  elseif string.find(first, "[opwt]") then
    what = due_first(at, ("2620000000000000"))
  end
local function due_read(at, budget, from)
  local keys = {}
  if budget.left > 0 then
    local members = redis.call("ZRANGEBYSCORE", at.line, (string.format("%d", (from))), (string.format("%d", (from + at.ms))), "LIMIT", "0", (string.format("%d", (budget.left))))
    if members[1] then
      redis.call("ZREM", at.line, unpack(members))
    end
    for n, member in ipairs(members) do
      keys[n] = string.sub(member, 3)
    end
    budget.left = budget.left - #members
  end
  return keys
end
local function due_items(at, st, budget, from)
  for _, key in ipairs(due_read(at, budget, from)) do
    local i, bad = item_read(at, key)
    if bad then
      damaged(at, st, key)
    elseif i and from == (262 * 10000000000000) then
      i.ends, i.was.ends, i.reason = 0, 0, i.pend > 0 and i.reason or ""
    elseif i then
      i.leaving, i.was.expiry = true, 0
    end
    if i then
      settle(at, st, key, i)
    end
  end
end
  if what == "e" then
    due_items(at, st, budget, (262 * 10000000000000))
  end
  if string.find(what, "[ex]") and last ~= "e" then
    due_items(at, st, budget, (264 * 10000000000000))
  end
  if st.pool.parked > 0 then
local function lanes_due(at, st, budget)
  if st.pause > 0 then
    return
  end
  lanes_patience(at, st, budget)
  if st.halted then
    return
  end
  local most = math.floor(budget.left / 2)
  local marks = redis.call("ZRANGEBYSCORE", at.line, ("2580000000000000"), (string.format("%d", ((258 * 10000000000000) + at.ms))),
    "LIMIT", "0", (string.format("%d", (most))))
  if st.pool.filled and #marks < most then
    local absent = ("2589999999999999")
    for _, member in ipairs(redis.call("ZRANGEBYSCORE", at.line, absent, absent, "LIMIT", "0", (string.format("%d", (most - #marks))))) do
      marks[#marks + 1] = member
    end
  end
  for _, member in ipairs(marks) do
    redis.call("ZREM", at.line, member)
    lane_touch(at, st, string.sub(member, 3))
    budget.left = budget.left - 1
  end
  st.met = st.met or #marks >= most
end
    local left = budget.left
    lanes_due(at, st, budget)
    budget.swept = budget.swept - left + budget.left
  end
  if string.find(what, "[exu]") and string.find(last, "[ud]") then
    for _, name in ipairs(due_read(at, budget, (266 * 10000000000000))) do
      redis.call("HDEL", at.bindings, "b" .. name)
    end
  end
  for _, target in ipairs(first == "o" and due_read(at, { left = 2 }, (256 * 10000000000000)) or {}) do
    redis.call("HDEL", at.state, "o:" .. target)
  end
end
    pool_due(at, st, budget)
  end
  budget.swept = budget.swept + before - budget.left
  return sooner
end
local function notify(at, st, deadline, claim, r)
  if ((st).pool and (st).waiting - (st).pool.parked or (st).waiting) <= 0 or not deadline then
    return
  end
  local next_at = deadline ~= true and deadline <= at.ms and deadline or soonest(at, st)
  if not next_at or deadline ~= true and deadline ~= next_at then
    return
  end
  if not r then
    claim, r = first_waiter(at)
    r = r and record_read(r)
  end
  if claim and r then
    notify_node(at, r, next_at)
  end
end
local function handoff(at, st, budget, head_left)
  if st.waiting <= 0 then
    return
  end
  if st.pause > 0 then
    notify(at, st, head_left or st.moved)
    return
  end
local function holding_begin(at, st, claim, chosen)
local function take(at, st, claim, chosen)
  local key, i, w = chosen.key, chosen.item, chosen.wants
  if not w.shared then
    i.claims[#i.claims + 1] = claim
    settle(at, st, key, i)
  end
  if i.listed then
    free_push(at, st, key)
  end
  if w.bind ~= "" then
local function settings_binds(at, st, key, i)
  local _, _, own = settings_own(at, key, i)
  return own or settings_of(st).bindfor or (3600000)
end
local function binding_begin(at, name, key, lasts, least_end)
  local ends = lasts == 0 and (9999999999999) or math.min(math.max(at.ms + lasts, least_end), (9999999999999))
  redis.call("HSET", at.bindings, "b" .. name, (string.format("%d", (ends))) .. " " .. key)
  if ends < (9999999999999) then
    redis.call("ZADD", at.line, (string.format("%d", ((266 * 10000000000000) + ends))), "u:" .. name)
  else
    redis.call("ZREM", at.line, "u:" .. name)
  end
  local ended = redis.call("ZRANGEBYSCORE", at.line, ("2660000000000000"), (string.format("%d", ((266 * 10000000000000) + at.ms))), "LIMIT", "0", "2")
local function binding_end(at, name)
  redis.call("ZREM", at.line, "u:" .. name)
  return redis.call("HDEL", at.bindings, "b" .. name)
end
  for _, member in ipairs(ended) do
    binding_end(at, string.sub(member, 3))
  end
end
    local lasts = w.bindfor or settings_binds(at, st, key, i)
    binding_begin(at, w.bind, key, lasts, w.bound == key and w.until_then or 0)
  end
end
  take(at, st, claim, chosen)
  return chosen.key, "r:" .. claim
end
local function pool_next(at, st, budget)
local function wants_read(terms)
  local extra = record_extra(terms)
  local kind, cooldown, bindfor, patience, size, from = string.match(extra, "^(%a) (%d+) (%S+) (%d+) (%d+):()")
  return {
    shared = kind == "s", alone = kind == "a", cooldown = tonumber(cooldown),
    bindfor = tonumber(bindfor), patience = tonumber(patience),
    resource = size ~= "0" and string.sub(extra, from, from + size - 1) or nil,
    bind = string.sub(extra, from + size),
  }
end
local function binding_of(at, name)
local function binding_parse(text)
  local ends, key = string.match(text or "", "^(%d+) (.*)$")
  return tonumber(ends), key
end
  local ends, key = binding_parse(redis.call("HGET", at.bindings, "b" .. name))
  if ends and ends > at.ms then
    return key, ends
  end
  return nil
end
local function head(at, st, budget, arrival)
  while ((st).pool and (st).waiting - (st).pool.parked or (st).waiting) > 0 and (arrival or budget.left > 0) do
    local claim, place, lane = first(at.line)
    if not claim and not arrival then
      st.waiting = st.waiting - ((st).pool and (st).waiting - (st).pool.parked or (st).waiting)
    end
    if not claim or arrival and (arrival.lane - lane < 0 or arrival.lane + 0 == lane and arrival.place < place) then
      break
    elseif arrival then
      return claim
    end
    local text = redis.call("HGET", at.state, "c:" .. claim)
    local r = text and record_read(text)
    local alive = r and r.place == place and r.alive > at.ms
    local heavy = alive and (false) and (false)(st, r)
    if alive and not heavy then
      return claim, r, lane
    end
    leave_place(at, st, claim, place, r)
    if heavy then
      wake(at, r.node, "too_heavy", at.name, claim, st.cap)
    end
    budget.left, budget.swept = budget.left - 1, budget.swept + 1
  end
  if arrival then
    return arrival.claim, arrival.r
  end
end
local function pick(at, st, w, budget)
  w.policy = settings_of(st).policy
  if w.bind ~= "" then
    w.bound, w.until_then = binding_of(at, w.bind)
  end
  local key, i, dropped = w.resource or w.bound
local function pick_fits(at, st, w, key)
  if not key or key == w.other then
    return nil, false
  end
  local i, dropped = item_read(at, key)
  if dropped then
    dropped = damaged(at, st, key)
  elseif i and i.listed and i.expiry > 0 and i.expiry <= at.ms then
    i.leaving, dropped = true, true
    redis.call("ZREM", at.line, "x:" .. key)
    settle(at, st, key, i)
  end
  return i and i.listed and not (w.alone and i.was.leased) and i or nil, dropped
end
  if st.pool.free > 0 and budget.left > 0 then
    i, dropped = pick_fits(at, st, w, key)
    budget.left = budget.left - (dropped and 1 or 0)
  end
local function pick_next(at, w)
  for _ = 1, w.policy == "r" and 8 or 0 do
    local drawn = redis.call("ZRANDMEMBER", at.free)
    if drawn and drawn ~= "" and drawn ~= w.other then
      return drawn
    end
  end
local function free_ends(at, policy)
  if policy == "m" then
    local last = redis.call("ZRANGE", at.free, "-3", "-2")
    return last[2] or last[1], last[2] and last[1]
  end
  return unpack(redis.call("ZRANGE", at.free, "0", "1"))
end
  local key, beside = free_ends(at, w.policy)
  if key == w.other then
    key = beside
  end
  return key ~= "" and key or nil
end
  while not i and not w.resource and st.pool.free > 0 and budget.left > 0 do
    key = pick_next(at, w)
    i, dropped = pick_fits(at, st, w, key)
    if not i and not dropped then
      if not key or key == w.other or not free_drop(at, key) then
        break
      end
      st.pool.free, dropped = st.pool.free - 1, true
    end
    budget.left = budget.left - (dropped and 1 or 0)
  end
  return i and { key = key, item = i, wants = w } or nil
end
  if st.pool.parked > 0 then
local function next_of_lanes(at, st, budget)
  if not st.patient then
    lanes_patience(at, st, budget)
  end
local function lanes_first(at, st, budget)
  local best, n = nil, 1
local function lanes_look(at, st, lane, budget)
  local item, bad = item_read(at, lane.key)
  lane.dirty = false
  if item and item.expiry > 0 and item.expiry <= at.ms and not item.leaving then
    redis.call("ZREM", at.line, "x:" .. lane.key)
    item.leaving = true
    settle(at, st, lane.key, item)
    lane.dirty = false
  end
  if bad then
    lanes_wait(at, st, lane, nil, nil, budget)
  elseif (not item or item.leaving) and not st.pool.filled then
    lanes_wait(at, st, lane, nil, (9999999999999), budget)
  elseif not item or item.leaving then
local function lanes_empty(at, st, lane, budget)
  while true do
    local claim, r, place = lanes_head(at, st, lane, budget)
    if not claim then
      return
    end
    local ends = string.match(redis.call("HGET", at.state, "q:" .. claim) or "", ("^(%S+) (.*)$"))
    if ends == ("-") then
      leave_place(at, st, claim, place, r)
      wake(at, r.node, "absent", at.name, claim)
    else
      lanes_move(at, st, claim)
    end
    budget.left = budget.left - 1
  end
end
    lanes_empty(at, st, lane, budget)
    lane.dirty = not lane.over and budget.left <= 0
  elseif item.listed then
    local claim, r, place = lanes_head(at, st, lane, budget)
    lane.claim, lane.r, lane.item, lane.order = claim, r, item, place
    lane.dirty = not claim and not lane.over
  else
    lanes_wait(at, st, lane, item, item_moment(item), budget)
  end
end
  while st.touched and st.touched[n] do
    local lane = st.touched[n]
    if lane.dirty and not lane.over and budget.left > 0 then
      lanes_look(at, st, lane, budget)
    end
    if lane.order and not lane.over and (not best or lane.order < best.order) then
      best = lane
    end
    n = n + 1
  end
  return best
end
  local apart = lanes_first(at, st, budget)
  if budget.left <= 0 or st.halted then
    return nil
  end
  local claim, r, lane = head(at, st, budget)
local function next_apart(at, lane)
  local w = wants_read(lane.r.terms)
  if w.bind ~= "" then
    w.bound, w.until_then = binding_of(at, w.bind)
  end
  return lane.claim, lane.r, { key = lane.key, item = lane.item, wants = w }
end
  if apart and not (r and string.format(("%03d%s"), lane, r.place) < apart.order) then
    return next_apart(at, apart)
  elseif not r or st.pool.free <= 0 then
    return claim, r
  end
  local chosen = pick(at, st, wants_read(r.terms), budget)
  local known = chosen and st.touched and st.touched[chosen.key]
local function lane_of(at, st, key)
  return st.pool.parked > 0 and redis.call("HGET", at.state, "l:" .. key) or nil
end
  if chosen and not known and lane_of(at, st, chosen.key) then
    lane_touch(at, st, chosen.key)
    budget.left = budget.left - 1
    return next_of_lanes(at, st, budget)
  elseif not chosen and apart and budget.left > 0 then
    return next_apart(at, apart)
  end
  return claim, r, chosen
end
    return next_of_lanes(at, st, budget)
  end
  local claim, r = head(at, st, budget)
  return claim, r, r and st.pool.free > 0 and pick(at, st, wants_read(r.terms), budget) or nil
end
  while st.waiting > 0 and budget.left > 0 do
    local waiting = st.waiting
    local claim, r, what = pool_next(at, st, budget)
    head_left = head_left or st.waiting < waiting
    if not what then
      if budget.left > 0 then
        notify(at, st, head_left or st.moved, claim, r)
        return
      end
      break
    end
    local got, field
    st.fence = math.max(st.fence + 1, at.us)
    r.fence = string.format(("%016d"), st.fence)
    if (true) then
      got, field = holding_begin(at, st, claim, what)
    end
    local alive, place = r.alive, r.place
    st.used, st.due = st.used + r.weight, st.due and (st.due == 0 and alive or math.min(st.due, alive))
    st.waiting, st.busy = st.waiting - 1, at.ms
    r.phase, r.granted = "g", string.format(("%013d"), at.ms)
    redis.call("ZREM", at.line, place .. ("-") .. claim)
    if (true) then
      lane_leave(at, st, claim, place)
    end
    redis.call("ZADD", at.line, (string.format("%d", ((10000000000000) + alive))), "h:" .. claim)
    redis.call("HSET", at.state, unpack({ "c:" .. claim, record_write(r), field, got }))
    wake(at, r.node, "granted", at.name, claim, r.fence, string.format(("%013d"), alive - at.ms), got or "", r.secret)
    head_left, budget.left = true, budget.left - 1
  end
  if st.waiting > 0 then
    notify(at, st, at.ms)
  end
end
    sooner = least(sooner, expire(at, st, budget))
    handoff(at, st, budget, head_left)
    if furthest or budget.left < 100 or st.waiting ~= waiting or st.used ~= used then
local function save(at, st, furthest, fields)
local function slim(at, st)
  local calm = at.ms - 10000
  if st.used > 0 or st.waiting > 0 or st.gone > 0 or st.keep > 0 or st.pause > 0 or st.cap ~= 1 or st.group_text
    or st.busy > calm and st.busy <= at.ms or st.ticket > calm or st.rev > at.ms - (60000) or st.fence >= at.us then
    return false
  end
  redis.call("UNLINK", at.line)
  redis.call("SET", at.state, string.format(("%016d"), st.fence), "PX", (string.format("%d", (at.linger))))
  return true
end
  if (false) and not fields and slim(at, st) then
    return
  end
  if st.gone > 0 or st.forever > 0 or st.keep > 0 then
    st.busy = at.ms
  end
local function kind_save(at, st)
  if st.touched then
local function lanes_keep(at, st)
  local told
  local budget = { left = 0, swept = 0 }
local function lanes_tell(at, st, lane)
  local _, _, text = lane_first(at, lane.key, lane.number)
  local r = text and record_read(text)
  if r then
    notify_node(at, r, math.max(st.pause, at.ms))
  end
  return r
end
  for _, lane in ipairs(st.touched or {}) do
    local item = not lane.over and lane.dirty and item_read(at, lane.key)
    if item and not item.listed and not item.leaving then
      lanes_wait(at, st, lane, item, item_moment(item), budget)
    elseif (not item or item.leaving) and lane.dirty and not lane.over and not st.pool.filled then
      lanes_wait(at, st, lane, nil, (9999999999999), budget)
    elseif (lane.dirty or lane.order) and not lane.over then
      redis.call("ZADD", at.line, (string.format("%d", ((258 * 10000000000000) + at.ms))), "w:" .. lane.key)
      st.met, told = st.met or st.pause == 0, told or lanes_tell(at, st, lane)
    end
  end
end
    lanes_keep(at, st)
  end
local function pool_save(st)
  local p = st.pool
  st.cap, st.keep = 1, (p.resources > p.leaving or string.sub(p.settings, 1, 1) == "o") and 1 or 0
local function pool_counts_write(p, used)
  local kept = (2000000000000000) + p.resources - p.free
  return string.format(("%d %013d %d %d %d %d %d "), (1000000000000000) + p.resources, p.gen, kept - used, kept - p.leased,
    (1000000000000000) + p.parked, (1000000000000000) + p.leaving, p.filled and 1 or 0) .. p.settings
end
  local counts = pool_counts_write(p, math.max(st.used, 0))
  return counts ~= st.counts and counts or nil
end
  return pool_save(st)
end
  local own, uses = (true) and kind_save(at, st), (3)
  local never = st.forever > 0 or st.keep > 0
  local last = furthest or at.ms
  local idle = st.used <= 0 and st.waiting <= 0 and st.exp > at.ms + 2 * at.linger + 1000
  if idle and st.gone > 0 then
    local stone = redis.call("ZREVRANGEBYSCORE", at.line, ("2609999999999999"), ("2600000000000000"),
      "WITHSCORES", "LIMIT", "0", "1")[2]
    last = math.max(last, stone and tonumber(stone) - (260 * 10000000000000) or 0)
  end
  if st.rev > at.ms - (60000) and (idle or st.rev ~= st.was_rev)
    and not (st.pool and st.keep > 0) then
    last = math.max(last, math.min(st.rev, at.ms + 1000) + (60000))
  end
  last = math.max(last, st.pause)
  local exp = math.ceil((last + at.linger) / 1000) * 1000
  if st.pool and never and st.was_never and st.pause == 0 and not furthest then
    exp = st.exp
  end
  st.exp = math.min(idle and exp or math.max(st.exp, exp), (9999999999999))
  local few = ("0 0 0 0 0 0")
  if st.gone ~= 0 or st.forever ~= 0 or st.pause ~= 0 or st.look ~= 0 then
    few = string.format(("%d %d %d %d %d %d"), st.gone, st.forever, st.keep, st.pause, st.look, st.rev)
  elseif st.keep ~= 0 or st.rev ~= 0 then
    few = string.format(("0 0 %d 0 0 %d"), st.keep, st.rev)
  end
  local due = earliest(at, st)
  if due == 0 or due > (9999999999999) then
    due = (9999999999999)
  end
  local all = { "v", string.format(("%d %016d %013d %013d %013d %013d %d %d %d "), uses, st.fence, st.exp, due, st.ticket, st.busy,
    (1000000000000000) + math.max(st.used, 0), (1000000) + math.max(st.waiting, 0), (1000000000000000) + st.cap) .. few,
    unpack(fields or {}) }
  if own then
    all[#all + 1], all[#all + 2] = "pool", own
  end
  redis.call("HSET", at.state, unpack(all))
  if never == st.was_never and (never or st.exp == st.was_exp) then
    return
  end
  for _, key in ipairs({ at.state, at.line, unpack(at.others or {}) }) do
    if never then
      redis.call("PERSIST", key)
    else
      redis.call("PEXPIREAT", key, (string.format("%d", (st.exp))))
    end
  end
end
      save(at, st, furthest)
      notify(at, st, sooner)
    end
  end
local function reply_next(at, st, node, budget, reply, alarms)
  local flags = (budget.left <= 0 or st.met) and 2 or 0
  local mine, least_at = false, nil
  local waits = (true) and alarms and alarms[1]
  local apart = waits and st.pool.parked > 0 and st.pause == 0
local function apart_alarm(at, claim, r)
  if #r.place ~= (16) then
    return false
  end
local function apart_rank(at, claim, r)
  local member = r.place .. ("-") .. claim
  local lane = #r.place == (16) and redis.call("ZSCORE", at.line, member)
  return lane and redis.call("ZRANK", at.line, member) - redis.call("ZCOUNT", at.line, "-inf", "(" .. lane) or nil
end
  local ahead = apart_rank(at, claim, r)
  if ahead then
local function apart_moment(at, claim, ahead)
  local ends, key = string.match(redis.call("HGET", at.state, "q:" .. claim) or "", ("^(%S+) (.*)$"))
  if not key then
    return nil, false
  end
  local own = ends ~= ("-") and ends ~= "0" and tonumber(ends) or nil
  local mark = redis.call("ZSCORE", at.line, "w:" .. key)
  local next_at = mark and mark - (258 * 10000000000000) < (9999999999999) and mark - (258 * 10000000000000) or nil
  local item = item_read(at, key)
  next_at = least(next_at, item and hold_first(at, item.claims))
  if own and own <= (next_at or own) then
    return own, true
  end
  return next_at and next_at < (9999999999999) and next_at or nil, ahead == 0
end
    return true, apart_moment(at, claim, ahead)
  elseif not hold_ends(at, nil, claim) then
    return false
  end
end
  for _, c in ipairs(apart and alarms or {}) do
    local own, moment, first = apart_alarm(at, c.claim, c.r)
    if own == false then
      apart = false
      break
    elseif moment and (not least_at or moment < least_at) then
      least_at, mine = moment, first
    end
  end
  local next_ms = least_at and math.max(least_at - at.ms, 0) or -1
  if not apart then
local function next_deadline(at, st, node)
  if st.waiting <= 0 then
    return -1, false
  end
  local next_at, claim, text = soonest(at, st), first_waiter(at)
  if text and st.pause == 0 then
    next_at = math.min(next_at or math.huge, (string.match(text, ("^[wp] 0*(%d+) ")) or 0) + 0)
  end
  local mine = claim and string.sub(claim, 1, #node + 1) == node .. "."
  return next_at and math.max(next_at - at.ms, 0) or -1, mine
end
    next_ms, mine = next_deadline(at, st, node)
  end
  reply[2], reply[3] = next_ms, flags + (mine and 4 or 0) + (waits and 8 or 0)
  reply[4] = (true) and ((st).pool.resources) or st.cap
end
local function publish(at)
  for i = 1, at.out and #at.out or 0, 2 do
    redis.pcall("PUBLISH", at.out[i], at.out[i + 1])
  end
end
  reply_next(at, st, node, budget, reply, waits)
  reply[5], reply[6] = st.used, st.waiting
  publish(at)
  return reply
end
return restore(at, st, ARGV[4], tonumber(ARGV[5]), { unpack(ARGV, 6) })
