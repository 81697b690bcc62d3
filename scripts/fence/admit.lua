--- @include "fence/outdated"
-- admit says whether what is done under a fence may go on: true, and no older
-- fence is admitted from now on, or false and the greatest that was admitted, as
-- text. The fence is text, as ARGV has it.
local function admit(key, fence)
  local old, kept = outdated(key, fence)
  if not old and kept ~= fence then
    redis.call("HSET", key, "fence", fence)
  end
  return not old, kept
end
