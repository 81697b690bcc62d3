--[[
lock_release: end an entry of a lock, or leave the line; the last entry hands on.
KEYS[1] state (HASH field -> number, c:claim -> record, stem)
KEYS[2] line (ZSET h:, a:, q:, t:claim -> score, see lib/bands)
ARGV[1] claim id    ARGV[2] node    ARGV[3] tombstone (ms, 0 = none)
ARGV[4] linger (ms)    ARGV[5] channel prefix    ARGV[6] name
ARGV[7...] x1: claim id of another entry that was lowered for this
RETURNS {"released", more, entries} | {"cancelled", more} | {"expired", more, entries} | {"not_held", word}
  | {"taken"} | {"incompatible", format}
REPLAY a claim that is gone is not_held    COST O(log n) + O(entries) + at most 100 drops and grants
]]
local function fetch(state, claim, ...)
  return redis.call("TIME"),
    redis.call("HMGET", state, "fmt", "counts", "ticket", "fence", "exp", "c:" .. (claim or ""), ...)
end
local function plainrelease(t, v, state, line, claim, node, stays, linger)
  local cap, used, waiting = string.match(v[2] or "", "^(%d+) (%d+) (%d+) 0 0 0$")
  local mine = #node .. ":" .. node
  if not cap or v[1] ~= "1" or not v[6] or v[7] or stays ~= "0" or string.sub(v[6], 1, #mine) ~= mine then
    return nil
  end
  local weight = string.match(v[6], "^[gh] %d+ %d+ %d+ %d+ (%d+)", #mine + 1)
  if not weight then
    return nil
  end
  local left, exp, after = used - weight, tonumber(v[5]), tonumber(linger)
  local us = t[1] * 1000000 + t[2]
  local ms = (us - us % 1000) / 1000
  if left < 0 or not exp or ms + after > exp or waiting == "0" and left == 0 and exp > ms + 2 * after then
    return nil
  end
  local deadline = redis.call("ZSCORE", line, "h:" .. claim)
  if not deadline then
    return nil
  end
  local status = deadline - ms > 0 and "released" or "expired"
  if waiting ~= "0" then
    return nil, { status = status, cap = cap, left = left, waiting = waiting - 1, us = us, ms = ms, fence = v[4] }
  end
  redis.call("ZREM", line, "h:" .. claim)
  redis.call("HDEL", state, "c:" .. claim)
  redis.call("HSET", state, "counts", cap .. " " .. left .. " 0 0 0 0")
  return status
end
local time, kept = fetch(KEYS[1], ARGV[1], "stem")
local status, plain = plainrelease(time, kept, KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3], ARGV[4])
if status then
  return { status, 0, 0 }
end
local function int(x)
  return string.format("%d", x)
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
local function first(line, many)
  local band = bands()
  local head = redis.call("ZRANGEBYSCORE", line, int(band.queue), int(band.queue_end), "WITHSCORES",
    "LIMIT", "0", many or "1")
  if not head[1] then
    return nil
  end
  return string.sub(head[1], 3), tonumber(head[2]) - band.queue, head[3] and string.sub(head[3], 3)
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
local function wake(out, channel, ...)
  local parts = {}
  for i = 1, select("#", ...) do
    local field = select(i, ...)
    field = type(field) == "number" and int(field) or field
    parts[i] = string.format("%d:", #field) .. field
  end
  out[#out + 1] = { channel, table.concat(parts) }
end
local function lowest(at)
  local band = bands()
  local score = tonumber(redis.call("ZRANGE", at.line, "0", "0", "WITHSCORES")[2])
  local held = score ~= nil and score < band.alive
  if not held or score == band.forever then
    score = nil
  end
  return score, held
end
local function soonest(at)
  local band, score = bands(), lowest(at)
  if at.free then
    local first_rest = redis.call("ZRANGEBYSCORE", at.line, band.rest, band.rest + band.forever - 1,
      "WITHSCORES", "LIMIT", 0, 1)
    local ends = tonumber(first_rest[2])
    if ends and (not score or ends - band.rest < score) then
      score = ends - band.rest
    end
  end
  return score
end
local function hasten(at, st, deadline, out, claim, r, alive, next_at)
  next_at = st.waiting > 0 and deadline and (next_at or soonest(at))
  if not next_at or deadline ~= true and deadline ~= next_at then
    return
  end
  if not claim then
    claim = first(at.line)
    local text = claim and redis.call("HGET", at.state, "c:" .. claim)
    r = text and record(text)
    if not r then
      return
    end
    alive = (tonumber(redis.call("ZSCORE", at.line, "a:" .. claim)) or 0) - bands().alive
  end
  if next_at < alive - r.wait / 2 then
    wake(out, at.channel .. r.node, "next", at.name, math.max(next_at - at.ms, 0))
  end
end
local function tell(out)
  for _, message in ipairs(out) do
    redis.pcall("PUBLISH", message[1], message[2])
  end
end
local function plainhandoff(p, state, line, claim, channel, name)
  local fence, heir, _, second = int(p.us), first(line, "2")
  if not heir then
    return nil
  end
  local texts = redis.call("HMGET", state, "c:" .. heir, "c:" .. (second or ""))
  local scores = redis.call("ZMSCORE", line, "a:" .. heir, "a:" .. (second or ""))
  local text, alive = texts[1], scores[1]
  local size, from = string.match(text or "", "^(%d+):()")
  if not alive or not size or not p.fence or #p.fence ~= #fence or p.fence >= fence then
    return nil
  end
  local ticket, limit, tail, takes = string.match(text, "^w (%d+) %d+ %d+ (%d+) ((%d+) .*)$", from + size)
  local lives = alive - bands().alive
  if not ticket or lives <= p.ms or p.left + takes ~= p.cap + 0 then
    return nil
  end
  local head = string.sub(text, 1, from + size - 1)
  redis.call("ZREM", line, "h:" .. claim)
  redis.call("HDEL", state, "c:" .. claim)
  redis.call("ZADD", line, int(lives), "h:" .. heir)
  redis.call("ZREM", line, "a:" .. heir, "q:" .. heir)
  redis.call("HSET", state, "counts", p.cap .. " " .. p.cap .. " " .. p.waiting .. " 0 0 0", "fence", fence,
    "c:" .. heir, head .. "g " .. ticket .. " " .. fence .. " " .. int(p.ms) .. " " .. limit .. " " .. tail)
  local out = {}
  wake(out, channel .. string.sub(head, from), "granted", name, heir, p.us, lives - p.ms, "")
  local r = texts[2] and record(texts[2])
  if r then
    hasten({ state = state, line = line, ms = p.ms, channel = channel, name = name }, p, true, out,
      second, r, (tonumber(scores[2]) or 0) - bands().alive, p.left == 0 and lives or nil)
  end
  tell(out)
  return p.status
end
status = plain and plainhandoff(plain, KEYS[1], KEYS[2], ARGV[1], ARGV[5], ARGV[6])
if status then
  return { status, 0, 0 }
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
local function endless(r)
  return r.lease == 0 and r.max == 0
end
local function counted(r)
  return endless(r) and r.phase ~= "g" and r.phase ~= "w" and 1 or 0
end
local function leave(at, st, claim, r, held, word, stays)
  if held then
    if redis.call("ZREM", at.line, "h:" .. claim) > 0 then
      st.used = st.used - r.weight
    end
  else
    at.parted = at.parted or first(at.line) == claim
    if redis.call("ZREM", at.line, "a:" .. claim, "q:" .. claim) > 0 then
      st.waiting = st.waiting - 1
    end
  end
  st.forever = st.forever - (r and counted(r) or 0)
  if word then
    redis.call("HSET", at.state, "c:" .. claim, "!" .. word)
    redis.call("ZADD", at.line, bands().tomb + at.ms + stays, "t:" .. claim)
    st.gone = st.gone + 1
  else
    redis.call("HDEL", at.state, "c:" .. claim)
  end
end
local function fresh(at, st)
  if st.fmt == 0 and redis.call("ZCARD", at.line) > 0 then
    redis.call("UNLINK", at.line)
  end
end
local function stem(text, fence)
  local w = {}
  for word in string.gmatch(text, "%S+") do
    w[#w + 1] = word
  end
  if w[1] ~= int(fence) then
    return nil
  end
  local s = {
    count = tonumber(w[2]), worked_at = tonumber(w[3]), extended = tonumber(w[4]), last = tonumber(w[5]),
    extended_at = tonumber(w[6]), more = tonumber(w[7]), own = tonumber(w[8]), deadline = tonumber(w[9]),
    call = w[10], entries = {},
  }
  for i = 11, #w, 7 do
    s.entries[#s.entries + 1] = {
      claim = w[i], kind = w[i + 1], ext = tonumber(w[i + 2]), at = tonumber(w[i + 3]), pending = tonumber(w[i + 4]),
      call = w[i + 5], fresh = w[i + 6] == "1",
    }
  end
  return s
end
local function group(at, st, text)
  local s = text and stem(text, st.fence)
  if not s then
    local sole = redis.call("ZRANGEBYSCORE", at.line, "(" .. at.ms, bands().forever, "LIMIT", 0, 1)[1]
    if not sole then
      return nil
    end
    s = {
      count = 0, worked_at = 0, extended = 0, last = 0, extended_at = 0, more = 0, call = "-",
      entries = { { claim = string.sub(sole, 3), kind = "o", ext = 0, at = 0, pending = 0, call = "-" } },
    }
  end
  local members, fields, live, unheard = {}, {}, {}, {}
  for i, e in ipairs(s.entries) do
    members[i], fields[i] = "h:" .. e.claim, "c:" .. e.claim
  end
  local scores = redis.call("ZMSCORE", at.line, unpack(members))
  local texts = redis.call("HMGET", at.state, unpack(fields))
  for i, e in ipairs(s.entries) do
    e.held = tonumber(scores[i])
    e.r = texts[i] and record(texts[i])
    if e.r and e.held and e.held > at.ms then
      local list = e.fresh and unheard or live
      list[#list + 1] = e
    end
  end
  for _, e in ipairs(unheard) do
    live[#live + 1] = e
  end
  s.entries = live
  if not live[1] then
    return nil
  end
  s.own, s.deadline = s.own or live[1].held, s.deadline or live[1].held
  return s
end
local function entry(s, claim)
  for i, e in ipairs(s and s.entries or {}) do
    if e.claim == claim then
      return e, i
    end
  end
  return nil
end
local function pack(r)
  return string.format("%d:%s%s %d %s %d %d ", #r.node, r.node, r.phase, r.ticket, r.fence, r.granted, r.limit)
    .. r.tail
end
local function stemtext(s, fence)
  local w = {
    int(fence), s.count, s.worked_at, s.extended, s.last, s.extended_at, s.more, int(s.own), int(s.deadline), s.call,
  }
  for _, e in ipairs(s.entries) do
    local n = #w
    w[n + 1], w[n + 2], w[n + 3], w[n + 4] = e.claim, e.kind, e.ext, e.at
    w[n + 5], w[n + 6], w[n + 7] = e.pending, e.call, e.fresh and 1 or 0
  end
  return table.concat(w, " ")
end
local function move(st, s)
  local scores, fields, furthest, sooner = {}, {}, nil, nil
  local forever = bands().forever
  if s.deadline > forever then
    s.own, s.deadline = math.min(s.own, forever - 1), forever - 1
  end
  for _, e in ipairs(s.entries) do
    local ends = e.r.limit > 0 and math.min(s.deadline, e.r.limit) or s.deadline
    if e.fresh then
      ends = math.min(ends, e.at + e.r.wait)
    end
    if ends < e.held then
      sooner = math.min(sooner or ends, ends)
    end
    if ends ~= e.held then
      scores[#scores + 1], scores[#scores + 2] = ends, "h:" .. e.claim
      e.held = ends
    end
    if ends < forever then
      furthest = math.max(furthest or 0, ends)
    end
    if e.changed then
      fields[#fields + 1], fields[#fields + 2] = "c:" .. e.claim, pack(e.r)
    end
  end
  if s.count > 0 or s.more > 0 then
    fields[#fields + 1], fields[#fields + 2] = "stem", stemtext(s, st.fence)
  end
  return scores, fields, furthest, sooner
end
local function sweep(at, st, budget, ended)
  local band, total = bands(), 0
  local function expired(from)
    if total >= budget then
      return {}
    end
    return redis.call("ZRANGEBYSCORE", at.line, int(from), int(from + at.ms), "LIMIT", "0", int(budget - total))
  end
  local function drop(members, fields)
    redis.call("ZREM", at.line, unpack(members))
    redis.call("HDEL", at.state, unpack(fields))
    total = total + #fields
  end
  local holds, next_at, held = {}, nil, nil
  if st.used > 0 then
    next_at, held = lowest(at)
  end
  if next_at and next_at <= at.ms then
    holds, next_at, held = expired(0), nil, nil
  end
  if #holds > 0 then
    local fields, records = {}, {}
    for i, member in ipairs(holds) do
      fields[i] = "c:" .. string.sub(member, 3)
    end
    for i, text in ipairs(redis.call("HMGET", at.state, unpack(fields))) do
      local r = text and record(text)
      st.used = st.used - (r and r.weight or 0)
      st.forever = st.forever - (r and counted(r) or 0)
      records[i] = r or false
    end
    local deadlines = ended and redis.call("ZMSCORE", at.line, unpack(holds))
    drop(holds, fields)
    for i, member in ipairs(ended and holds or {}) do
      ended(string.sub(member, 3), records[i], tonumber(deadlines[i]))
    end
  end
  local dead = st.waiting > 0 and expired(band.alive) or {}
  if #dead > 0 then
    local fields, members = {}, {}
    for i, member in ipairs(dead) do
      local claim = string.sub(member, 3)
      fields[i] = "c:" .. claim
      members[2 * i - 1], members[2 * i] = member, "q:" .. claim
    end
    st.waiting, at.parted = st.waiting - #dead, true
    drop(members, fields)
  end
  local stones = st.gone > 0 and expired(band.tomb) or {}
  if #stones > 0 then
    local fields = {}
    for i, member in ipairs(stones) do
      fields[i] = "c:" .. string.sub(member, 3)
    end
    st.gone = st.gone - #stones
    drop(stones, fields)
  end
  return total, next_at, held
end
local function handoff(at, st, budget, out, deal)
  local band, spent = bands(), 0
  while st.waiting > 0 and spent < budget do
    if st.used >= st.cap and st.cap == at.cap and not deal then
      hasten(at, st, at.parted, out)
      break
    end
    local claim = first(at.line)
    if not claim then
      st.waiting = 0
      break
    end
    local text = redis.call("HGET", at.state, "c:" .. claim)
    local r = text and record(text)
    local alive = (tonumber(redis.call("ZSCORE", at.line, "a:" .. claim)) or 0) - band.alive
    if not r or alive <= at.ms then
      leave(at, st, claim, r, false)
    elseif r.weight > st.cap then
      leave(at, st, claim, r, false)
      wake(out, at.channel .. r.node, "too_heavy", at.name, claim, st.cap)
    elseif not deal and r.weight > st.cap - st.used then
      hasten(at, st, at.parted, out, claim, r, alive)
      break
    else
      local what, drops
      if deal then
        what, drops = deal(claim, r, budget - spent)
        spent = spent + drops
        if not what then
          hasten(at, st, at.parted, out, claim, r, alive)
          break
        end
      end
      st.fence = math.max(st.fence + 1, at.us)
      st.used = st.used + r.weight
      st.waiting = st.waiting - 1
      r.phase, r.fence, r.granted = "g", int(st.fence), at.ms
      redis.call("ZREM", at.line, "q:" .. claim)
      redis.call("ZADD", at.line, int(alive), "h:" .. claim)
      redis.call("ZREM", at.line, "a:" .. claim)
      redis.call("HSET", at.state, "c:" .. claim, pack(r))
      wake(out, at.channel .. r.node, "granted", at.name, claim, st.fence, alive - at.ms, what or "")
      at.parted = true
    end
    spent = spent + 1
  end
  return spent
end
local function expiry(at, st, furthest)
  if st.forever > 0 or st.keep > 0 then
    return 0
  end
  local wanted = math.ceil(((furthest or at.ms) + at.linger) / 1000) * 1000
  local idle = st.used <= 0 and st.waiting <= 0 and st.exp > at.ms + 2 * at.linger
  if st.exp == 0 or idle then
    local band = bands()
    for _, from in ipairs({ 0, band.alive, band.tomb }) do
      local last = st.fmt > 0 and redis.call("ZREVRANGEBYSCORE", at.line, from + band.width - 2, from,
        "WITHSCORES", "LIMIT", 0, 1)
      if last and last[2] then
        wanted = math.max(wanted, math.ceil((tonumber(last[2]) - from + at.linger) / 1000) * 1000)
      end
    end
    return wanted
  end
  return math.max(st.exp, wanted)
end
local function save(at, st, furthest, ...)
  local exp = expiry(at, st, furthest)
  local counts = string.format("%d %d %d %d %d %d", st.cap, st.used, st.waiting, st.gone, st.forever, st.keep)
  local moved, fields = exp ~= st.exp or st.fmt == 0, { "counts", counts, "fence", int(st.fence), ... }
  local function also(field, value)
    fields[#fields + 1], fields[#fields + 2] = field, value
  end
  if st.ticket ~= at.ticket then
    also("ticket", int(st.ticket))
  end
  if moved then
    st.exp = exp
    also("fmt", "1")
    also("exp", int(exp))
  end
  redis.call("HSET", at.state, unpack(fields))
  if exp == 0 then
    if moved then
      redis.call("PERSIST", at.line)
      redis.call("PERSIST", at.state)
      for _, key in ipairs(at.more or {}) do
        redis.call("PERSIST", key)
      end
    end
    return
  end
  if moved then
    redis.call("PEXPIREAT", at.state, int(exp))
    for _, key in ipairs(at.more or {}) do
      redis.call("PEXPIREAT", key, int(exp))
    end
  end
  if moved or furthest and not at.lasting then
    redis.call("PEXPIREAT", at.line, int(exp))
  end
end
local claim, node, stays = ARGV[1], ARGV[2], tonumber(ARGV[3])
local at, st, known, newer, stem_text = assemble(time, kept, KEYS[1], KEYS[2], ARGV[4], ARGV[5], ARGV[6])
local out, budget = {}, 100
if newer then
  return { "incompatible", newer }
end
local r = known and record(known)
if not r then
  if not known and stays > 0 then
    fresh(at, st)
    redis.call("ZREM", at.line, "t:" .. claim)
    redis.call("ZADD", at.line, bands().tomb + at.ms + stays, "t:" .. claim)
    st.gone = st.gone + 1
    save(at, st, at.ms + stays, "c:" .. claim, "!gone")
  end
  return { "not_held", known and string.sub(known, 2) or "" }
end
if r.node ~= node then
  return { "taken" }
end
local deadline = tonumber(redis.call("ZSCORE", at.line, "h:" .. claim))
local s = deadline and st.used > 1 and group(at, st, stem_text) or nil
leave(at, st, claim, r, deadline ~= nil, stays > 0 and "gone" or nil, stays)
local e, i = entry(s, claim)
local changes, sooner, unused = {}, nil, 0
if e then
  table.remove(s.entries, i)
  unused = math.max(0, e.ext - (at.ms - e.at))
end
if e and s.entries[1] then
  local lowered = {}
  for n = 7, #ARGV do
    lowered[ARGV[n]] = true
  end
  for _, f in ipairs(s.entries) do
    if f.r.node ~= node or not lowered[f.claim] then
      unused = 0
    end
  end
  if s.deadline < bands().forever then
    s.deadline = math.max(s.own, s.deadline - unused)
  end
  local scores, fields, _, nearer = move(st, s)
  changes, sooner = fields, nearer
  if #scores > 0 then
    redis.call("ZADD", at.line, unpack(scores))
  end
elseif deadline and stem_text and st.used <= 0 then
  redis.call("HDEL", at.state, "stem")
end
local spent = 0
if deadline and st.used > 0 and not (s and s.entries[1]) then
  spent = sweep(at, st, budget)
end
spent = spent + handoff(at, st, budget - spent, out)
save(at, st, stays > 0 and at.ms + stays, unpack(changes))
hasten(at, st, sooner, out)
tell(out)
if not deadline then
  return { "cancelled", spent >= budget and 1 or 0 }
elseif deadline <= at.ms then
  return { "expired", spent >= budget and 1 or 0, s and #s.entries or 0 }
end
return { "released", spent >= budget and 1 or 0, s and #s.entries or 0 }

