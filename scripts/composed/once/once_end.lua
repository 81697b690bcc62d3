--[[
once_end: say how a run ended, unless another one has begun since.
KEYS[1] runs (HASH fmt, expires, run, success, due, see once/open)
ARGV[1] fence of the hold    ARGV[2] start of the period (ms)    ARGV[3] its end (ms)    ARGV[4] end of the next (ms)
ARGV[5] end of the one after that (ms)    ARGV[6] attempt    ARGV[7] when the run began, as once_begin said (ms)
ARGV[8] node    ARGV[9] its label    ARGV[10] done, failed or stopped    ARGV[11] why it failed
ARGV[12] how long nobody begins again (ms)
RETURNS {"ended"} | {"stale", greatest} | {"incompatible", format}
REPLAY what has ended stays as it is    COST O(1)
]]
local fence, start, over = ARGV[1] + 0, ARGV[2] + 0, ARGV[3] + 0
local function once_open(key, length)
  local got = redis.call("HMGET", key, "fmt", "expires", "run", "success")
local function now(t)
  local seconds, micros = t[1] + 0, t[2] + 0
  return seconds * 1000 + (micros - micros % 1000) / 1000, seconds * 1000000 + micros
end
local function run_read(text)
  local start, over, fence, attempt, begun, ended, again, missed, outcome =
    string.match(text, "^(%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%a+) %S+ %d+:")
  return start and {
    text = text, start = start + 0, over = over + 0, fence = fence + 0, attempt = attempt + 0, begun = begun + 0,
    ended = ended + 0, again = again + 0, missed = missed + 0, outcome = outcome,
  }
end
  local at = { key = key, ms = now(redis.call("TIME")), expires = tonumber(got[2] or 0) }
  at.run, at.success = run_read(got[3] or ""), run_read(got[4] or "")
  if (got[1] or "1") ~= "1" then
    at.newer = got[1]
  elseif not at.expires or got[3] and not at.run or got[4] and not at.success then
    at.newer = "0"
  elseif at.run and at.run.start > at.ms + length + (60000) then
    at.run, at.success, at.expires = nil, nil, 0
  end
  return at
end
local at = once_open(KEYS[1], over - start)
local last, success = at.run, at.success
if at.newer then
  return { "incompatible", at.newer }
elseif last and last.fence > fence then
  return { "stale", (string.format("%d", (last.fence))) }
elseif not last or last.fence < fence then
  last = {
    start = start, over = over, fence = fence, attempt = ARGV[6] + 0, begun = ARGV[7] + 0, ended = 0, missed = 0,
  }
end
if last.ended == 0 then
  last.ended, last.again, last.outcome = at.ms, at.ms + ARGV[12], ARGV[10]
local function run_write(run, node, label, why)
  return string.format("%d %d %d %d %d %d %d %d %s %s %d:", run.start, run.over, run.fence, run.attempt, run.begun,
    run.ended, run.again, run.missed, run.outcome, node, #label) .. label .. why
end
local function once_save(at, run, text, due, keep, done)
  local expires = (string.format("%d", (math.max(at.expires, at.ms < run.over and keep + 0 or at.ms + keep - run.start))))
  redis.call("HSET", at.key, "fmt", "1", "expires", expires, "run", text)
  if done then
    redis.call("HSET", at.key, "success", text, "due", due)
  elseif not at.success then
    redis.call("HDEL", at.key, "success")
    redis.call("HSET", at.key, "due", due)
  end
  redis.call("PEXPIREAT", at.key, expires)
end
  local done = ARGV[10] == "done" and not (success and success.start > start)
  redis.call("PEXPIREAT", at.key, (string.format("%d", (at.ms + ARGV[5] - start))))
  once_save(at, last, run_write(last, ARGV[8], ARGV[9], ARGV[11]), done and ARGV[4] or ARGV[3], ARGV[5], done)
end
return { "ended" }
