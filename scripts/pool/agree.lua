--- @include "pool/settings"
-- agree fills in what a process says, for the script to write where it writes; to operators' calls that is no
-- change, see state/revision. It returns false,
-- and has filled in nothing, if the process says another word than one that is set and goes by no
-- others; and whether it says another, or one that is unset still. adds is true for an Add.
local function agree(st, opinions, adds)
  local p = st.pool
  if not opinions or opinions == "" or string.find(p.settings, opinions) then
    return true, false
  end
  local filled, differs = settings_fill(p.settings, opinions, adds)
  if differs and string.sub(opinions, 1, #settings_strict) == settings_strict then
    return false, true
  end
  p.settings = filled
  return true, not string.find(filled, opinions)
end

-- agree_refuse answers a claim that asks for more than the limits, or comes from a process that goes by
-- no settings but its own; nil for others.
local function agree_refuse(st, ask)
  local p = st.pool
  local agrees, differs = agree(st, ask.opinions)
  ask.differs = differs
  if not agrees then
    return { "differs", st.used, st.waiting, 0, 0, p.resources, p.settings }
  elseif p.settings == settings_none then
    return nil
  end
  local set = settings_of(st)
  if set.lease and settings_above(ask.r.lease, set.lease) or set.hold and settings_above(ask.r.max, set.hold) then
    return { "limited", st.used, st.waiting, 0, 0, p.resources, p.settings }
  end
end
