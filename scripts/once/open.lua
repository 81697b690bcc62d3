--- @include "state/now"
--- @include "state/int"
--- @include "once/run"
-- What is known of the runs of a name is a hash:
--   fmt      the number of this form: 1
--   expires  when all of it is forgotten (ms)
--   run      the run that began last, see once/run
--   success  the newest run that is done
--   due      when the next run is due (ms): at the end of the period after that of success; without one at the end of
--            the period of run, or of the one after it while run goes on
-- A period has started before anybody begins a run in it. So a run whose period starts in the future
-- says that the server's clock was put back since. By up to a period and a minute the run still counts,
-- so that a small step runs nothing twice; by more it counts as nothing, so that nothing is stuck for
-- longer than that.
local once_slack = 60000

-- once_open reads the run and the success of a name, nil where there is none that counts. length is that of the
-- caller's period (ms). newer is the
-- number of a form that this release does not know, "0" for what no release has written.
local function once_open(key, length)
  local got = redis.call("HMGET", key, "fmt", "expires", "run", "success")
  local at = { key = key, ms = now(redis.call("TIME")), expires = tonumber(got[2] or 0) }
  at.run, at.success = run_read(got[3] or ""), run_read(got[4] or "")
  if (got[1] or "1") ~= "1" then
    at.newer = got[1]
  elseif not at.expires or got[3] and not at.run or got[4] and not at.success then
    at.newer = "0"
  elseif at.run and at.run.start > at.ms + length + once_slack then
    at.run, at.success, at.expires = nil, nil, 0
  end
  return at
end

-- once_save writes a run, whose text is given, and as the success too where done says so. It stays until the end of the
-- period after the next, keep; a run that took longer than its period leaves it for as long as three periods. It is
-- never forgotten earlier than it was to be.
local function once_save(at, run, text, due, keep, done)
  local expires = int(math.max(at.expires, at.ms < run.over and keep + 0 or at.ms + keep - run.start))
  redis.call("HSET", at.key, "fmt", "1", "expires", expires, "run", text)
  if done then
    redis.call("HSET", at.key, "success", text, "due", due)
  elseif not at.success then
    redis.call("HDEL", at.key, "success") -- one that does not count
    redis.call("HSET", at.key, "due", due)
  end
  redis.call("PEXPIREAT", at.key, expires)
end
