--[[
pool_bindings: one binding, or some of them, in no order.
KEYS[1] state (HASH field -> number)
KEYS[2] items (HASH i:resource -> item)
KEYS[3] bindings (HASH b:name -> end, resource)
ARGV[1] name of the binding ("" = a page of all)    ARGV[2] cursor (0 to begin)    ARGV[3] about how many
RETURNS {"page", cursor, ...} | {"incompatible", format}
REPLAY reads only    COST O(page)
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
local function bound(at, name)
  local text = redis.call("HGET", at.bindings, "b" .. name)
  local ends, key = string.match(text or "", "^(%d+) (.*)$")
  if ends and tonumber(ends) > at.ms then
    return key, tonumber(ends)
  end
  return nil
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
local at, forever = { ms = now(redis.call("TIME")), items = KEYS[2], bindings = KEYS[3] }, bands().forever
local format = tonumber(redis.call("HGET", KEYS[1], "fmt")) or 0
if format > 1 then
  return { "incompatible", format }
end
local names, cursor = { ARGV[1] }, "0"
if ARGV[1] == "" then
  local page = redis.call("HSCAN", at.bindings, ARGV[2], "MATCH", "b*", "COUNT", ARGV[3])
  names, cursor = {}, page[1]
  for n = 1, #page[2], 2 do
    names[#names + 1] = string.sub(page[2][n], 2)
  end
end
local reply = { "page", cursor }
for _, name in ipairs(names) do
  local key, ends = bound(at, name)
  local i = key and item(at, key)
  if i and not i.leaving and (i.expiry == 0 or i.expiry > at.ms) then
    reply[#reply + 1], reply[#reply + 2] = name, key
    reply[#reply + 1] = ends == forever and -1 or ends - at.ms
  end
end
return reply

