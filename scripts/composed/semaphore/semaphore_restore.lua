--[[
semaphore_restore: a node's waiting claims that the server no longer knows stand where they stood.
KEYS[1] state (HASH v -> values, c:claim -> record; STRING see state/thin)
KEYS[2] line (ZSET place-claim, h:, t:claim, - -> score, see state/score)
ARGV[1] linger (ms)    ARGV[2] channel prefix    ARGV[3] name    ARGV[4] node
ARGV[5] capacity, if none is stored
ARGV[6...] x3: claim id, place, record with its ticket
RETURNS {"restored", next_ms, flags, setting, held, waiting, ...} | {"incompatible", format}
REPLAY a claim that is known stays as it is    COST O(log n) a claim + at most 100 drops and grants
]]
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
local at, st = open(KEYS, ARGV[1], ARGV[2], ARGV[3], nil, fetch(KEYS))
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
  if not deadline and (false) then
    (false)(at, st, claim, r.place, absent)
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
  if (false) then
    return (false)(at, st, claim, r, deadline, wish)
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
local function hold_ends(at, st, claim)
  if st and st.form == "thin" then
    return st.thin and st.thin.claim == claim and st.thin.held or nil
  end
  local score = tonumber(redis.call("ZSCORE", at.line, "h:" .. claim))
  return score and score - (10000000000000)
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
  if (true) and ((r).weight > (st).cap) then
    return "too_heavy", nil, sooner, head_left
  end
  local word
  local lane, place, apart = string.match(standing, ("^(%d+) (%d+) ?(.*)$"))
  if apart ~= "" and (false) then
    word, apart = (false)(at, st, apart)
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
  if (false) and not st.form then
    (false)(at)
  end
  st.form, st.thin, st.group_text, at.head = "fat", nil, anew and false or st.group_text, "-"
  st.was_exp, st.was_never, st.busy = 0, false, at.ms
end
  fatten(at, st, true)
  r.phase, r.place, r.alive = "w", place, at.ms + r.wait
  if apart ~= "" then
    (false)(at, st, claim, r, lane, apart)
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
  local low, moment = earliest(at, st), (false) and (false)(at, st)
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
local function wake(at, node, ...)
  local parts = { ... }
  for i, field in ipairs(parts) do
    field = type(field) == "number" and (string.format("%d", (field))) or field
    parts[i] = string.format("%d:", #field) .. field
  end
  at.out = at.out or {}
  at.out[#at.out + 1], at.out[#at.out + 2] = at.channel .. node, table.concat(parts)
end
local function least(a, b)
  return a and b and math.min(a, b) or a or b
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
  local deadlines, sooner = (false) and redis.call("ZMSCORE", at.line, unpack(holds)), nil
  expire_drop(at, budget, holds, fields)
  for i, member in ipairs((false) and holds or {}) do
    local ends = (false)(at, st, string.sub(member, 3), records[i], tonumber(deadlines[i]) - (10000000000000))
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
  if (false) then
    (false)(at, st, budget)
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
local function notify_node(at, r, next_at)
  if next_at <= at.ms or next_at < r.alive - r.wait / 2 then
    wake(at, r.node, "next", at.name, math.max(next_at - at.ms, 0))
    return true
  end
  return false
end
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
local function kind_next(at, st, budget, arrival)
  if not arrival and st.used >= st.cap and st.cap == st.was_cap then
    return nil
  end
local function head(at, st, budget, arrival)
local function leave_place(at, st, claim, place, r)
  if r and r.phase == "w" and r.place == place then
    leave(at, st, claim, r)
  else
    redis.call("ZREM", at.line, place .. ("-") .. claim)
    st.waiting = st.waiting - 1
    if (false) then
      (false)(at, st, claim, place)
    end
  end
end
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
    local heavy = alive and (true) and ((r).weight > (st).cap)
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
  local claim, r = head(at, st, budget, arrival)
  return claim, r, r and r.weight <= st.cap - st.used
end
  while st.waiting > 0 and budget.left > 0 do
    local waiting = st.waiting
    local claim, r, what = kind_next(at, st, budget)
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
    if (false) then
      got, field = (false)(at, st, claim, what)
    end
    local alive, place = r.alive, r.place
    st.used, st.due = st.used + r.weight, st.due and (st.due == 0 and alive or math.min(st.due, alive))
    st.waiting, st.busy = st.waiting - 1, at.ms
    r.phase, r.granted = "g", string.format(("%013d"), at.ms)
    redis.call("ZREM", at.line, place .. ("-") .. claim)
    if (false) then
      (false)(at, st, claim, place)
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
  if (true) and not fields and slim(at, st) then
    return
  end
  if st.gone > 0 or st.forever > 0 or st.keep > 0 then
    st.busy = at.ms
  end
  local own, uses = (false) and (false)(at, st), (3)
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
  local waits = (false) and alarms and alarms[1]
  local apart = waits and st.pool.parked > 0 and st.pause == 0
  for _, c in ipairs(apart and alarms or {}) do
    local own, moment, first = (false)(at, c.claim, c.r)
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
  reply[4] = (false) and (false)(st) or st.cap
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
