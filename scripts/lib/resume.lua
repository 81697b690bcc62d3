--- @include "lib/bands"
--- @include "lib/record"
--- @include "lib/lengthen"
--- @include "lib/touch"
-- resume has a node take up a hold that another one (from) has detached. It returns
-- resumed, attached (the node has it already), not_held or taken, and with the first
-- two the record and the deadline; after resumed both are to be written.
local function resume(at, st, known, claim, from, to)
  local r = known and record(known)
  local deadline = r and tonumber(redis.call("ZSCORE", at.line, "h:" .. claim))
  if not deadline or deadline <= at.ms then
    return "not_held"
  elseif r.node ~= from and (r.node ~= to or r.phase == "d") then
    return "taken" -- by a third node, or this one has detached it again
  elseif r.node ~= from or r.phase ~= "d" then
    return "attached", r, deadline
  end
  touch(at, st) -- a full server must not keep a hold from its new holder
  r.node, r.phase = to, "h"
  return "resumed", r, lengthen(at, st, r, deadline, "beat")
end
