-- What stands before a script, and behind it, where a tape is replayed. The time is the last two arguments. No key expires by
-- itself: when each does is kept in a hash beside the first one. What servers answer in an order of their own, or by
-- chance, comes in one order. The reply has all that the script has called, and its reply.
local us, sec = table.remove(ARGV), table.remove(ARGV)
local now, ends, log, redis_ = sec * 1000 + math.floor(us / 1000), KEYS[1] .. "!ends", {}, redis
local function there(key) return redis_.call("EXISTS", key) == 1 end
local function expire(key, at)
  if not there(key) then return 0 end
  redis_.call("HSET", ends, key, string.format("%.0f", tonumber(at)))
  return 1
end
local function pairs_of(key)
  local all, fields, sorted = redis_.call("HGETALL", key), {}, {}
  for i = 1, #all, 2 do fields[#fields + 1] = all[i]; fields[all[i]] = all[i + 1] end
  table.sort(fields)
  for i, f in ipairs(fields) do sorted[2 * i - 1], sorted[2 * i] = f, fields[f] end
  return sorted
end
local function page(all, cursor, size, of)
  local from, some = tonumber(cursor) * of, {}
  for i = from + 1, math.min(#all, from + size * of) do some[#some + 1] = all[i] end
  return { from + size * of < #all and string.format("%.0f", from / of + size) or "0", some }
end
local function count(words)
  for i, word in ipairs(words) do if word == "COUNT" then return tonumber(words[i + 1]) end end
  return 10
end
local special = {
  TIME = function() return { sec, us } end,
  PEXPIREAT = function(w) return expire(w[2], w[3]) end,
  PEXPIRE = function(w) return expire(w[2], now + w[3]) end,
  PERSIST = function(w) return redis_.call("HDEL", ends, w[2]) end,
  PTTL = function(w)
    local at = redis_.call("HGET", ends, w[2])
    return at and at - now or there(w[2]) and -1 or -2
  end,
  SET = function(w)
    local lasts, keeps, i = nil, false, 4
    while w[i] do
      if w[i] == "PX" then
        lasts, i = w[i + 1], i + 1
      elseif w[i] == "KEEPTTL" then
        keeps = true
      elseif w[i] ~= "NX" then
        error("SET with " .. w[i])
      elseif there(w[2]) then
        return false
      end
      i = i + 1
    end
    local reply = redis_.call("SET", w[2], w[3])
    if lasts then
      expire(w[2], now + lasts)
    elseif not keeps then
      redis_.call("HDEL", ends, w[2])
    end
    return reply
  end,
  HGETALL = function(w) return pairs_of(w[2]) end,
  HRANDFIELD = function(w) return pairs_of(w[2])[1] or false end,
  HSCAN = function(w) return page(pairs_of(w[2]), w[3], count(w), 2) end,
  ZSCAN = function(w) return page(redis_.call("ZRANGE", w[2], "0", "-1", "WITHSCORES"), w[3], count(w), 2) end,
}
local function run(how, words)
  for _, word in ipairs(words) do
    log[#log + 1] = type(word) == "number" and string.format("%.0f", word) or word
  end
  log[#log + 1] = "\n"
  if #log > 500 then log = { redis_.sha1hex(table.concat(log, " ")) } end -- the embedded server joins no more than some thousand
  local f = special[string.upper(words[1])]
  local reply
  if f then
    local well
    well, reply = pcall(f, words)
    if not well and how == "pcall" then
      reply = type(reply) == "table" and reply or { err = tostring(reply) }
    elseif not well then
      error(reply)
    end
  else
    reply = redis_[how](unpack(words))
  end
  for _, key in ipairs(KEYS) do
    if not there(key) then redis_.call("HDEL", ends, key) end
  end
  return reply
end
for _, key in ipairs(KEYS) do
  local at = redis_.call("HGET", ends, key)
  if at and tonumber(at) <= now then redis_.call("DEL", key) redis_.call("HDEL", ends, key) end
end
local redis = setmetatable({
  call = function(...) return run("call", { ... }) end,
  pcall = function(...) return run("pcall", { ... }) end,
}, { __index = redis_ })
local function main()
-- The script stands here.
end
local done, reply = pcall(main)
if not done then reply = { "error", (string.gsub(type(reply) == "table" and reply.err or tostring(reply), " script: .*", "")) } end
return { table.concat(log, " "), reply }
