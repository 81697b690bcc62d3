--[[
pool_resources: what is known of given resources, or of a page of all, in no order.
KEYS[1] state (HASH field -> number, c:claim -> record, r:claim -> resource)
KEYS[2] line (ZSET h:, a:, q:, t:claim, e:, x:resource, u:binding -> score, see lib/bands)
KEYS[3] items (HASH i:resource -> item)
ARGV[1] cursor (0 to begin, "" = only those given)    ARGV[2] about how many
ARGV[3...] x1: resource
RETURNS {"page", cursor, now_ms, ...} | {"incompatible", format}
REPLAY reads only    COST O(page), and O(1) a resource given
]]
local function now(t)
  local seconds, micros = tonumber(t[1]), tonumber(t[2])
  return seconds * 1000 + (micros - micros % 1000) / 1000, seconds * 1000000 + micros
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
local function describe(at, key, reply, text)
  local forever = bands().forever
  local function left(ends)
    return ends == forever and -1 or ends - at.ms
  end
  local i = item(at, key, text)
  if i and i.expiry > 0 and i.expiry <= at.ms then
    i.leaving = true
  end
  local holders, furthest = {}, 0
  for _, claim in ipairs(i and i.claims or {}) do
    local deadline = tonumber(redis.call("ZSCORE", at.line, "h:" .. claim))
    local record = redis.call("HGET", at.state, "c:" .. claim)
    if deadline and deadline > at.ms and record then
      local n = #holders
      holders[n + 1], holders[n + 2], holders[n + 3] = claim, left(deadline), record
      furthest = math.max(furthest, deadline)
    end
  end
  local n, resting = #reply, i and i.ends > at.ms
  local word, ends = "free", 0
  if holders[1] then
    word, ends = "leased", left(furthest)
  elseif not i or i.leaving then
    word = "absent"
  elseif resting then
    word, ends = "resting", left(i.ends)
  end
  reply[n + 1], reply[n + 2], reply[n + 3] = key, word, ends
  reply[n + 4] = i and (resting or i.pend > 0) and i.reason or ""
  reply[n + 5] = i and not i.leaving and i.expiry > 0 and i.expiry - at.ms or 0
  reply[n + 6] = word == "leased" and i.leaving and 1 or 0
  reply[n + 7] = i and i.max or 0
  reply[n + 8] = #holders / 3
  for _, field in ipairs(holders) do
    reply[#reply + 1] = field
  end
end
local at = { ms = now(redis.call("TIME")), state = KEYS[1], line = KEYS[2], items = KEYS[3] }
local format = tonumber(redis.call("HGET", at.state, "fmt")) or 0
if format > 1 then
  return { "incompatible", format }
end
local reply = { "page", "0", at.ms }
if ARGV[1] ~= "" then
  local page = redis.call("HSCAN", at.items, ARGV[1], "MATCH", "i*", "COUNT", ARGV[2])
  reply[2] = page[1]
  for n = 1, #page[2], 2 do
    describe(at, string.sub(page[2][n], 2), reply, page[2][n + 1])
  end
end
for n = 3, #ARGV do
  describe(at, ARGV[n], reply)
end
return reply

