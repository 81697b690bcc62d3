--[[
fat_renew: the heartbeats of holds of fat names of locks and semaphores, in the plain case.
KEYS[1...] x2: state (HASH v -> values, c:claim -> record, stem; STRING see state/thin), line (ZSET see state/score)
ARGV[1] linger (ms)    ARGV[2] node    ARGV[3...] x1: claim id (of each name)
RETURNS {"held", left_ms, fence, ...}
REPLAY a lease is counted from now    COST O(log n) a name, at most 20 of them
]]
local function fast_beats(t, linger, node)
  return {
    now = string.sub((("3 ") .. ((#((t))[1] < 10 and "0" or "") .. ((t))[1] .. string.sub("00000", #((t))[2]) .. ((t))[2])), (3), (15)), linger = linger,
    from = (62) + #node + 1, whose = ("0000000000000") .. (" ") .. node .. (" "),
  }
end
local beats = fast_beats(redis.call("TIME"), ARGV[1], ARGV[2])
local reply = { "held" }
local function fast_renew(beats, v, state, line, claim)
  local text, record = v[1], v[2]
  local call = redis.call
local function fast_behind(beats, text)
  local sub = string.sub
  local behind = sub(text, (74) + 1)
  if behind ~= beats.calm then
    if sub(text, (118), (124)) ~= ("0 0 0 0")
      or sub(text, (93), (99)) ~= ("1000000") then
      return nil
    end
    beats.calm, beats.alone = behind, sub(text, (76), (91)) == ("1000000000000001")
  end
  if text < ("4") and sub(text, (34), (46)) > beats.now then
    return behind
  end
end
  local behind = not v[3] and text and fast_behind(beats, text)
local function fast_beating(beats, record)
  local from, sub = beats.from, string.sub
  if not record or sub(record, 1, (2)) ~= ("h ") or sub(record, (48), from - 1) ~= beats.whose then
    return false
  elseif sub(record, from + (11)) == beats.rest then
    return true
  end
  local behind, lease = string.match(record, ("^%S+() %d+ r %d+ (%d+) 0 "), from)
  local reach = lease and beats.now + lease + beats.linger
  if not reach or reach > (9999999999999) then
    return false
  end
  local format = string.format
  beats.rest = behind == from + (11) and sub(record, behind)
  beats.lease, beats.ends = lease, format(("%013d"), beats.now + lease)
  beats.reach, beats.exp = format(("%013d"), reach), format(("%013d"), math.ceil(reach / 1000) * 1000)
  return true
end
  if not behind or not fast_beating(beats, record) then
    return nil
  end
  local exp, hold = string.sub(text, (20), (34) - 2), "h:" .. claim
  if beats.reach > exp then
    exp = beats.exp
  end
  if call("PEXPIREAT", line, exp) ~= 1 then
    return nil
  elseif call("ZADD", line, "XX", "CH", ("1") .. beats.ends, hold) == 0 and not call("ZSCORE", line, hold) then
    return nil
  end
local function fast_write(beats, text, behind, state, line, exp)
  local sub = string.sub
  local call = redis.call
  if exp ~= sub(text, (20), (34) - 2) then
    call("PEXPIREAT", state, exp)
  end
  local due = beats.ends
  if not beats.alone then
    due = call("ZRANGEBYSCORE", line, ("10000000000000"), ("19999999999998"), "WITHSCORES", "LIMIT", "0", "1")[2]
    due = sub(due, (2))
  end
  call("HSET", state, "v", sub(text, 1, (20) - 1) .. exp .. (" ") .. due
    .. sub(text, (46) + 1, (74)) .. behind)
end
  fast_write(beats, text, behind, state, line, exp)
  return beats.lease, string.sub(record, (17), (32))
end
local function renew_on()
  for at = #reply + 1, #KEYS, 2 do
    local claim = ARGV[at / 2 + 2]
    reply[at], reply[at + 1] = 0, 0
    local v = redis.call("HMGET", KEYS[at - 1], "v", "c:" .. claim, "stem")
    local left, fence = fast_renew(beats, v, KEYS[at - 1], KEYS[at], claim)
    if left then
      reply[at], reply[at + 1] = left, fence
    end
  end
end
while #reply < #KEYS do
  pcall(renew_on)
end
return reply
