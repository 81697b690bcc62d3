--[[
once_begin: begin a run of a period, unless the period is done, over or used up.
KEYS[1] runs (HASH fmt, expires, run, success, see once/open)
ARGV[1] fence of the hold    ARGV[2] start of the period (ms)    ARGV[3] length of a period (ms)
ARGV[4] so many runs of a period begin at most    ARGV[5] node    ARGV[6] its label
RETURNS {"begun", attempt, begun_ms, missed} | {"done", run} | {"failed", run, left_ms} | {"used_up", run}
  | {"late"} | {"stale", greatest} | {"incompatible", format}
REPLAY the same fence has begun the same run until that has ended; a late copy uses up an attempt at most    COST O(1)
]]
local fence, start, every = ARGV[1] + 0, ARGV[2] + 0, ARGV[3] + 0
local function once_open(key, every)
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
  local at = { key = key, ms = now(redis.call("TIME")), every = every, expires = tonumber(got[2] or 0) }
  at.run, at.success = run_read(got[3] or ""), run_read(got[4] or "")
  if (got[1] or "1") ~= "1" then
    at.newer = got[1]
  elseif not at.expires or got[3] and not at.run or got[4] and not at.success then
    at.newer = "0"
  elseif at.run and at.run.start > at.ms + every + (60000) then
    at.run, at.success, at.expires = nil, nil, 0
  end
  return at
end
local at = once_open(KEYS[1], every)
local last, success = at.run, at.success
if at.newer then
  return { "incompatible", at.newer }
elseif success and (success.start >= start or success.over > start and success.over - success.start == every) then
  return { "done", success.text }
elseif last and last.fence == fence and last.ended == 0 and last.start == start then
  return { "begun", last.attempt, (string.format("%d", (last.begun))), last.missed }
elseif at.ms < start or at.ms >= start + every then
  return { "late" }
end
local attempt, missed = 1, 0
if last then
  if last.fence >= fence then
    return { "stale", (string.format("%d", (last.fence))) }
  elseif last.start > start then
    return { "late" }
  elseif last.start < start then
    local between, done = math.max(start - last.over, 0), success and success.start >= last.start
    missed = (between - between % every) / every + (done and 0 or 1)
  else
    attempt = last.attempt + (last.outcome == "stopped" and 0 or 1)
    missed = last.outcome == "failed" and 0 or last.missed
    if attempt > ARGV[4] + 0 then
      return { "used_up", last.text }
    elseif last.again > at.ms then
      return { "failed", last.text, (string.format("%d", (math.min(last.again, start + every) - at.ms))) }
    end
  end
end
local function run_write(run, node, label, why)
  return string.format("%d %d %d %d %d %d %d %d %s %s %d:", run.start, run.over, run.fence, run.attempt, run.begun,
    run.ended, run.again, run.missed, run.outcome, node, #label) .. label .. why
end
local function once_save(at, start, text, done)
  local passed = math.max(at.ms - start, 0)
  local expires = (string.format("%d", (math.max(at.expires, start + passed - passed % at.every + 3 * at.every))))
  if done then
    redis.call("HSET", at.key, "fmt", "1", "expires", expires, "run", text, "success", text)
  else
    redis.call("HSET", at.key, "fmt", "1", "expires", expires, "run", text)
    if not at.success then
      redis.call("HDEL", at.key, "success")
    end
  end
  redis.call("PEXPIREAT", at.key, expires)
end
once_save(at, start, run_write({
  start = start, over = start + every, fence = fence, attempt = attempt, begun = at.ms, ended = 0, again = 0,
  missed = missed, outcome = "begun",
}, ARGV[5], ARGV[6], ""))
return { "begun", attempt, (string.format("%d", (at.ms))), missed }
