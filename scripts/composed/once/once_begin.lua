--[[
once_begin: begin a run of a period, unless the period is done, over or used up.
KEYS[1] runs (HASH fmt, expires, run, success, due, see once/open)
ARGV[1] fence of the hold    ARGV[2] start of the period (ms)    ARGV[3] its end (ms)    ARGV[4] end of the next (ms)
ARGV[5] end of the one after that (ms)    ARGV[6] so many runs of a period begin at most    ARGV[7] node
ARGV[8] its label    ARGV[9] middle of the period, 0 unless it lies around a moment (ms)
ARGV[10] start of the period of the last run that the caller knows, 0 for none (ms)
ARGV[11] so many periods lie between that one and this one
RETURNS {"begun", attempt, begun_ms, missed} | {"done", run} | {"failed", run, left_ms} | {"used_up", run}
  | {"changed", run} | {"late"} | {"stale", greatest} | {"incompatible", format}
REPLAY the same fence has begun the same run until that has ended; a late copy uses up an attempt at most    COST O(1)
]]
local fence, start, over, middle = ARGV[1] + 0, ARGV[2] + 0, ARGV[3] + 0, ARGV[9] + 0
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
local done = success and success.start >= start
if success and middle > 0 then
  done = done or success.over > middle and success.start + success.over >= 2 * start
elseif success then
  done = done or success.over > start and success.over - success.start == over - start
end
if at.newer then
  return { "incompatible", at.newer }
elseif done then
  return { "done", success.text }
elseif last and last.fence == fence and last.ended == 0 and last.start == start then
  return { "begun", last.attempt, (string.format("%d", (last.begun))), last.missed }
elseif at.ms < start or at.ms >= over then
  return { "late" }
end
local attempt, missed = 1, 0
if last then
  if last.fence >= fence then
    return { "stale", (string.format("%d", (last.fence))) }
  elseif last.start > start then
    return { "late" }
  elseif last.start < start then
    if last.start ~= ARGV[10] + 0 then
      return { "changed", last.text }
    end
    missed = ARGV[11] + (success and success.start >= last.start and 0 or 1)
  else
    attempt = last.attempt + (last.outcome == "stopped" and 0 or 1)
    missed = last.outcome == "failed" and 0 or last.missed
    if attempt > ARGV[6] + 0 then
      return { "used_up", last.text }
    elseif last.again > at.ms then
      return { "failed", last.text, (string.format("%d", (math.min(last.again, over) - at.ms))) }
    end
  end
end
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
last = {
  start = start, over = over, fence = fence, attempt = attempt, begun = at.ms, ended = 0, again = 0, missed = missed,
  outcome = "begun",
}
once_save(at, last, run_write(last, ARGV[7], ARGV[8], ""), ARGV[4], ARGV[5])
return { "begun", attempt, (string.format("%d", (at.ms))), missed }
