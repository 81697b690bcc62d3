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
-- The caller holds the lock of the name under the fence, or has lost it. Whoever has begun under a
-- greater fence makes this call stale, and so does the end of its own run: this is a late copy then. A late
-- copy of a call that has begun nothing may begin a run that nobody runs, as if its process had died.
-- Periods may have different lengths, which only the caller knows. A caller that does not know the last run asks again.
--- @include "once/open"
local fence, start, over, middle = ARGV[1] + 0, ARGV[2] + 0, ARGV[3] + 0, ARGV[9] + 0
local at = once_open(KEYS[1], over - start)
local last, success = at.run, at.success
local done = success and success.start >= start -- a later one has other settings
if success and middle > 0 then -- periods that reach each other's middle are around one moment, by other settings
  done = done or success.over > middle and success.start + success.over >= 2 * start
elseif success then -- one that reaches into this one, of the same length, has another offset
  done = done or success.over > start and success.over - success.start == over - start
end
if at.newer then
  return { "incompatible", at.newer }
elseif done then
  return { "done", success.text }
elseif last and last.fence == fence and last.ended == 0 and last.start == start then -- also when the period is over
  return { "begun", last.attempt, int(last.begun), last.missed }
elseif at.ms < start or at.ms >= over then
  return { "late" }
end
local attempt, missed = 1, 0
if last then
  if last.fence >= fence then
    return { "stale", int(last.fence) }
  elseif last.start > start then
    return { "late" }
  elseif last.start < start then
    if last.start ~= ARGV[10] + 0 then
      return { "changed", last.text }
    end
    missed = ARGV[11] + (success and success.start >= last.start and 0 or 1)
  else
    attempt = last.attempt + (last.outcome == "stopped" and 0 or 1)
    missed = last.outcome == "failed" and 0 or last.missed -- who began it may not have told of them
    if attempt > ARGV[6] + 0 then
      return { "used_up", last.text }
    elseif last.again > at.ms then
      return { "failed", last.text, int(math.min(last.again, over) - at.ms) }
    end
  end
end
last = {
  start = start, over = over, fence = fence, attempt = attempt, begun = at.ms, ended = 0, again = 0, missed = missed,
  outcome = "begun",
}
once_save(at, last, run_write(last, ARGV[7], ARGV[8], ""), ARGV[4], ARGV[5])
return { "begun", attempt, int(at.ms), missed }
