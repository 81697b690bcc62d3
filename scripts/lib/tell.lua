-- tell publishes what wake collected. It comes last and through pcall: an ACL
-- that forbids it must not leave a step half done, the heartbeat brings the
-- same news.
local function tell(out)
  for _, message in ipairs(out) do
    redis.pcall("PUBLISH", message[1], message[2])
  end
end
