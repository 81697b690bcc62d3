--[[
once_end: say how a run ended, unless another one has begun since.
KEYS[1] runs (HASH fmt, expires, run, success, see once/open)
ARGV[1] fence of the hold    ARGV[2] start of the period (ms)    ARGV[3] length of a period (ms)
ARGV[4] attempt    ARGV[5] when the run began, as once_begin said (ms)    ARGV[6] node    ARGV[7] its label
ARGV[8] done, failed or stopped    ARGV[9] why it failed    ARGV[10] how long nobody begins again (ms)
RETURNS {"ended"} | {"stale", greatest} | {"incompatible", format}
REPLAY what has ended stays as it is    COST O(1)
]]
-- A full server lets it write, also where it has forgotten the run: the first command needs no memory.
--- @include "once/open"
local fence, start, every = ARGV[1] + 0, ARGV[2] + 0, ARGV[3] + 0
local at = once_open(KEYS[1], every)
local last, success = at.run, at.success
if at.newer then
  return { "incompatible", at.newer }
elseif last and last.fence > fence then
  return { "stale", int(last.fence) }
elseif not last or last.fence < fence then
  last = {
    start = start, over = start + every, fence = fence, attempt = ARGV[4] + 0, begun = ARGV[5] + 0, ended = 0, missed = 0,
  }
end
if last.ended == 0 then
  last.ended, last.again, last.outcome = at.ms, at.ms + ARGV[10], ARGV[8]
  local done = ARGV[8] == "done" and not (success and success.start > start)
  redis.call("PEXPIREAT", at.key, int(at.ms + 3 * every))
  once_save(at, start, run_write(last, ARGV[6], ARGV[7], ARGV[9]), done)
end
return { "ended" }
