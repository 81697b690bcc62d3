-- publish publishes what wake collected. It comes last and through pcall: an ACL
-- that forbids it must not leave a step half done, the heartbeat brings the
-- same news.
local function publish(at)
  for i = 1, at.out and #at.out or 0, 2 do
    redis.pcall("PUBLISH", at.out[i], at.out[i + 1])
  end
end
