--[[
lock_info: a lock as it is now: its entries, the outermost first, and what re-entries did.
KEYS[1] state (HASH field -> number, c:claim -> record, stem)
KEYS[2] line (ZSET h:, a:, q:, t:claim -> score, see lib/bands)
RETURNS {"info", now_ms, waiting, count, worked_at, extended_ms, last_ms, extended_at, ...} | {"incompatible", format}
REPLAY reads only    COST O(log n) + O(entries)
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
local function span(at, deadline)
  return deadline >= bands().forever and -1 or deadline - at.ms
end
local time, kept = fetch(KEYS[1], nil, "stem")
local at = { state = KEYS[1], line = KEYS[2], ms = now(time) }
local st, stem_text = load(at, kept), kept[7]
if st.fmt > 1 then
  return { "incompatible", st.fmt }
end
local alive = bands().alive
local waiting = redis.call("ZCOUNT", at.line, alive + at.ms + 1, bands().queue - 1)
local s = group(at, st, stem_text)
if not s then
  return { "info", at.ms, waiting, 0, 0, 0, 0, 0 }
end
local reply = { "info", at.ms, waiting, s.count, s.worked_at, s.extended, s.last, s.extended_at }
for _, e in ipairs(s.entries) do
  local n = #reply
  reply[n + 1], reply[n + 2], reply[n + 3] = e.claim, span(at, e.held), pack(e.r)
end
return reply

