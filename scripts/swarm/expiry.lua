-- set_expiry keeps one expiry on both keys of a swarm. Who is condemned must be
-- remembered for so many milliseconds (memory), and nothing in them lasts longer:
-- so they end a minute after that, if nothing moves the expiry again. As a first
-- write it needs no memory.
local function set_expiry(at, memory)
  local ends = math.ceil((at.ms + memory) / 1000) * 1000 + 60000
  redis.call("PEXPIREAT", at.state, ends)
  redis.call("PEXPIREAT", at.probes, ends)
end
