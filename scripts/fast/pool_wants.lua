--- @include "state/record"
--- @include "pool/wants"
--- @include "pool/settings"
-- plain_asks reads what a claim asks for: wait lease, lease, maximum hold, kind, bindfor and bind; kind is nil for one
-- that names a resource.
local function plain_asks(owned)
  local _, wait, lease, max = string.match(owned, record_asking)
  local _, terms = string.match(owned, record_owns)
  return wait, lease, max, string.match(record_extra(terms), wants_plain)
end

-- plain_agrees reads the policy and bindfor of settings, nil if a claim asks for more than they allow, or its
-- process says something else, and was not told of them.
local function plain_agrees(settings, opinions, told, lease, max)
  local policy, binds, longest, limit = string.match(settings, settings_asked)
  if opinions ~= "" and not string.find(settings, opinions) and settings ~= told
    or longest ~= "-" and longest ~= "0" and (lease == "0" or lease - longest > 0)
    or limit ~= "-" and limit ~= "0" and (max == "0" or max - limit > 0) then
    return nil
  end
  return policy, binds
end
