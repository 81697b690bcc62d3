--- @include "state/record"
--- @include "state/fatten"
--- @include "state/touch"
--- @include "state/save"
--- @include "line/hold"
--- @include "wake/wake"
--- @include "wake/publish"
-- want asks for a hold back, of whatever node or only of the one given. Nothing ends and no deadline
-- moves: the record says since when the hold is wanted, every heartbeat of it is told, and the message
-- only prompts the next one. Behind wanted the reply says for how long (ms), and whether no process
-- has the hold (1, 0).
local function want(at, st, known, claim, node)
  if at.newer then
    return { "incompatible", at.newer }
  end
  local r = known and record_read(known)
  if not r then
    return { "not_held", string.match(known or "", record_word) or "" }
  elseif node ~= "" and r.node ~= node then
    return { "not_held", "" } -- another node has resumed it: not the one that is meant
  elseif r.phase == "w" then
    return { "waits" }
  end
  local held, new = hold_ends(at, st, claim), r.wanted == ""
  if not held then
    return { "not_held", "" }
  elseif held <= at.ms then
    return { "expired" }
  end
  local since = record_want(r, at.ms)
  if new and st.form == "thin" then
    fatten(at, st, false, claim)
    save(at, st, held, { "c:" .. claim, record_write(r) })
  elseif new then
    touch(at, st) -- a full server lets the rest pass
    redis.call("HSET", at.state, "c:" .. claim, record_write(r)) -- no value of the name changes
  end
  wake(at, r.node, "wanted", at.name, claim)
  publish(at)
  return { "wanted", math.max(at.ms - since, 0), tonumber(r.fence), r.phase == "d" and 1 or 0 }
end
