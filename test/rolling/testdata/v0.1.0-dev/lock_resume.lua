--[[
lock_resume: another node takes up a detached entry.
KEYS[1] state (HASH field -> number, c:claim -> record, stem)
KEYS[2] line (ZSET h:, a:, q:, t:claim -> score, see lib/bands)
ARGV[1] claim id    ARGV[2] node that detached it    ARGV[3] node that takes it up
ARGV[4] linger (ms)    ARGV[5] channel prefix    ARGV[6] name
RETURNS {"resumed", left_ms, limit_ms, record} | {"attached", left_ms, limit_ms, record}
  | {"not_held", word} | {"taken"} | {"incompatible", format}
REPLAY the new node may ask again; the answer is attached then   COST O(log n) + O(entries)
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
local function pack(r)
  return string.format("%d:%s%s %d %s %d %d ", #r.node, r.node, r.phase, r.ticket, r.fence, r.granted, r.limit)
    .. r.tail
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
local function int(x)
  return string.format("%d", x)
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
local function endless(r)
  return r.lease == 0 and r.max == 0
end
local function counted(r)
  return endless(r) and r.phase ~= "g" and r.phase ~= "w" and 1 or 0
end
local function prolong(at, st, s, e, mode)
  local outer, forever = s.entries[1], bands().forever
  local r = outer.r
  if mode == "check" then
    return
  end
  if e.fresh then
    st.forever = st.forever - counted(e.r)
    e.fresh, e.r.phase, e.changed = false, "h", true
    st.forever = st.forever + counted(e.r)
  end
  local starts = e == outer and r.phase == "g"
  local anew = starts or (mode == "renew" and r.phase ~= "g") or (e == outer and r.kind == "r" and r.phase ~= "d")
  if starts then
    for _, f in ipairs(s.entries) do
      st.forever = st.forever - counted(f.r)
      if f.r.max > 0 and f.r.limit == 0 then
        f.r.limit = at.ms + f.r.max
      end
      if f.r.phase == "g" then
        f.r.phase = "h"
      end
      st.forever = st.forever + counted(f.r)
      f.changed = true
    end
  end
  if anew and r.lease == 0 then
    s.own, s.deadline = forever, forever
  elseif anew then
    local own = at.ms + r.lease
    s.own = math.min(math.max(s.own, own), own + s.more)
    s.deadline = math.min(math.max(s.deadline, own), own + s.more)
  end
  local more, call = string.match(mode, "^extend (%d+) (%S+)$")
  more = call and call ~= e.call and tonumber(more) or 0
  if s.deadline < forever then
    s.own, s.deadline = s.own + more, s.deadline + more + e.pending
    s.more = s.more + more + e.pending
    e.ext, s.extended = e.ext + e.pending, s.extended + e.pending
  end
  e.call, e.pending = call or e.call, 0
  if mode == "detach" then
    st.forever = st.forever - counted(e.r)
    if e.r.max > 0 and e.r.limit == 0 then
      e.r.limit = at.ms + e.r.max
    end
    e.r.phase, e.changed, e.ext = "d", true, 0
    st.forever = st.forever + counted(e.r)
  end
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
local function span(at, deadline)
  return deadline >= bands().forever and -1 or deadline - at.ms
end
local function told(at, s, e)
  local outer, ends = s.entries[1], e.held
  if e ~= outer and outer.r.lease > 0 then
    ends = math.min(ends, at.ms + outer.r.lease + s.more)
  end
  if e ~= outer and e.r.max > 0 and e.r.limit == 0 then
    ends = math.min(ends, at.ms + e.r.max)
  end
  return span(at, ends)
end
local function touch(at, st)
  if st.exp > 0 then
    redis.call("PEXPIREAT", at.line, st.exp)
  else
    redis.call("PERSIST", at.line)
  end
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
local function tell(out)
  for _, message in ipairs(out) do
    redis.pcall("PUBLISH", message[1], message[2])
  end
end
local claim, from, to = ARGV[1], ARGV[2], ARGV[3]
local at, st, known, newer, stem_text = open(KEYS[1], KEYS[2], ARGV[4], ARGV[5], ARGV[6], claim, "stem")
local out = {}
if newer then
  return { "incompatible", newer }
end
local r = known and record(known)
local s = r and group(at, st, stem_text)
local e = entry(s, claim)
if not e then
  return { "not_held", known and not r and string.sub(known, 2) or "" }
end
r = e.r
if r.node ~= from and (r.node ~= to or r.phase == "d") then
  return { "taken" }
end
local detached = r.node == from and r.phase == "d"
if detached then
  touch(at, st)
  if from ~= to then
    wake(out, at.channel .. from, "taken", at.name, claim)
  end
  r.node, r.phase, e.changed = to, "h", true
  prolong(at, st, s, e, "beat")
  local scores, fields, furthest = move(st, s)
  if #scores > 0 then
    redis.call("ZADD", at.line, unpack(scores))
  end
  save(at, st, furthest, unpack(fields))
  tell(out)
end
return { detached and "resumed" or "attached", told(at, s, e), r.limit > 0 and r.limit - at.ms or -1, pack(r) }

