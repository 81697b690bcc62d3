--[[
once_begin: begin a run of a period, unless the period is done, over or used up.
KEYS[1] runs (HASH fmt, expires, run, success, see once/open)
ARGV[1] fence of the hold    ARGV[2] start of the period (ms)    ARGV[3] length of a period (ms)
ARGV[4] so many runs of a period begin at most    ARGV[5] node    ARGV[6] its label
RETURNS {"begun", attempt, begun_ms, missed} | {"done", run} | {"failed", run, left_ms} | {"used_up", run}
  | {"late"} | {"stale", greatest} | {"incompatible", format}
REPLAY the same fence has begun the same run until that has ended; a late copy uses up an attempt at most    COST O(1)
]]
-- The caller holds the lock of the name under the fence, or has lost it. Whoever has begun under a
-- greater fence makes this call stale, and so does the end of its own run: this is a late copy then. A late
-- copy of a call that has begun nothing may begin a run that nobody runs, as if its process had died.
--- @include "once/open"
local fence, start, every = ARGV[1] + 0, ARGV[2] + 0, ARGV[3] + 0
local at = once_open(KEYS[1], every)
local last, success = at.run, at.success
if at.newer then
  return { "incompatible", at.newer }
elseif success and (success.start >= start or success.over > start and success.over - success.start == every) then
  -- a later one has other settings; one that reaches into this one, of the same length, another offset
  return { "done", success.text }
elseif last and last.fence == fence and last.ended == 0 and last.start == start then -- also when the period is over
  return { "begun", last.attempt, int(last.begun), last.missed }
elseif at.ms < start or at.ms >= start + every then
  return { "late" }
end
local attempt, missed = 1, 0
if last then
  if last.fence >= fence then
    return { "stale", int(last.fence) }
  elseif last.start > start then
    return { "late" }
  elseif last.start < start then
    local between, done = math.max(start - last.over, 0), success and success.start >= last.start
    missed = (between - between % every) / every + (done and 0 or 1)
  else
    attempt = last.attempt + (last.outcome == "stopped" and 0 or 1)
    missed = last.outcome == "failed" and 0 or last.missed -- who began it may not have told of them
    if attempt > ARGV[4] + 0 then
      return { "used_up", last.text }
    elseif last.again > at.ms then
      return { "failed", last.text, int(math.min(last.again, start + every) - at.ms) }
    end
  end
end
once_save(at, start, run_write({
  start = start, over = start + every, fence = fence, attempt = attempt, begun = at.ms, ended = 0, again = 0,
  missed = missed, outcome = "begun",
}, ARGV[5], ARGV[6], ""))
return { "begun", attempt, int(at.ms), missed }
