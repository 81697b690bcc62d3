--- @include "state/record"
--- @include "state/touch"
--- @include "state/save"
--- @include "line/hold"
--- @include "line/batch"
--- @include "line/remaining"
-- resume has a node take up a hold that another one (from) has detached, with a call of
-- the mode. The reply is
--   status, left_ms, limit_ms, record, extra
-- where -1 is no end, and the status attached says that the node has it already; or
--   not_held, what a tombstone says
local function resume(at, st, known, claim, from, to, mode)
  if at.newer then
    return { "incompatible", at.newer }
  end
  local r = known and record_read(known)
  local held = r and hold_ends(at, st, claim)
  if not held or held <= at.ms then
    r = nil
  elseif kind_hold then
    r = kind_hold(at, st, claim)
  else
    r.held = held
  end
  if not r then
    return { "not_held", string.match(known or "", record_word) or "" }
  elseif r.node ~= from and (r.node ~= to or r.phase == "d") then
    return { "taken" } -- by a third node, or this one has detached it again
  end
  local word = "attached"
  if r.node == from and r.phase == "d" then
    local m = batch()
    word = "resumed"
    touch(at, st) -- a full server must not keep a hold from its new holder
    r.node, r.phase, r.changed = to, "h", true
    kind_renew(at, st, claim, r, mode, m)
    if kind_deadlines then
      kind_deadlines(at, st, m)
    end
    batch_write(at, st, m)
    save(at, st, m.furthest, m.fields)
  end
  local left = kind_left and kind_left(at, st, claim) or remaining(at, r.held)
  return { word, left, r.limit > 0 and r.limit - at.ms or -1, r.text or record_write(r), st.extra }
end
