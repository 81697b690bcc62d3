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
-- A full server lets it write, also where it has forgotten the run: the first command needs no memory.
--- @include "once/open"
local fence, start, over = ARGV[1] + 0, ARGV[2] + 0, ARGV[3] + 0
local at = once_open(KEYS[1], over - start)
local last, success = at.run, at.success
if at.newer then
  return { "incompatible", at.newer }
elseif last and last.fence > fence then
  return { "stale", int(last.fence) }
elseif not last or last.fence < fence then
  last = {
    start = start, over = over, fence = fence, attempt = ARGV[6] + 0, begun = ARGV[7] + 0, ended = 0, missed = 0,
  }
end
if last.ended == 0 then
  last.ended, last.again, last.outcome = at.ms, at.ms + ARGV[12], ARGV[10]
  local done = ARGV[10] == "done" and not (success and success.start > start)
  redis.call("PEXPIREAT", at.key, int(at.ms + ARGV[5] - start))
  once_save(at, last, run_write(last, ARGV[8], ARGV[9], ARGV[11]), done and ARGV[4] or ARGV[3], ARGV[5], done)
end
return { "ended" }
