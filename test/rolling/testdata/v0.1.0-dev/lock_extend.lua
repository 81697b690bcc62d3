--[[
lock_extend: move the deadline of a hold, whoever has it, further off.
KEYS[1] state (HASH field -> number, c:claim -> record, stem)
KEYS[2] line (ZSET h:, a:, q:, t:claim -> score, see lib/bands)
ARGV[1] by how much (ms)    ARGV[2] id of this call    ARGV[3] fence (0 = any)
ARGV[4] linger (ms)    ARGV[5] channel prefix    ARGV[6] name
RETURNS {"extended", left_ms, fence} | {"not_held"} | {"other", fence} | {"incompatible", format}
REPLAY the same call id adds nothing    COST O(log n) + O(entries)
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
local function span(at, deadline)
  return deadline >= bands().forever and -1 or deadline - at.ms
end
local function touch(at, st)
  if st.exp > 0 then
    redis.call("PEXPIREAT", at.line, st.exp)
  else
    redis.call("PERSIST", at.line)
  end
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
local more, call = tonumber(ARGV[1]), ARGV[2]
local at, st, _, newer, stem_text = open(KEYS[1], KEYS[2], ARGV[4], ARGV[5], ARGV[6], nil, "stem")
if newer then
  return { "incompatible", newer }
end
local s = st.used > 0 and group(at, st, stem_text)
if not s then
  return { "not_held" }
end
if ARGV[3] ~= "0" and ARGV[3] ~= s.entries[1].r.fence then
  return { "other", tonumber(s.entries[1].r.fence) }
end
touch(at, st)
if not string.find(s.call, call, 1, true) and s.deadline < bands().forever then
  s.own, s.deadline, s.more = s.own + more, s.deadline + more, s.more + more
  s.call = string.sub(call .. "," .. s.call, 1, 100)
  local scores, fields, furthest = move(st, s)
  if #scores > 0 then
    redis.call("ZADD", at.line, unpack(scores))
  end
  save(at, st, furthest, unpack(fields))
end
local furthest = 0
for _, e in ipairs(s.entries) do
  furthest = math.max(furthest, e.held)
end
return { "extended", span(at, furthest), tonumber(s.entries[1].r.fence) }

