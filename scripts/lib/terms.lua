-- terms writes another kind, lease and maximum hold (ms) into a record: an entry
-- of an owner that holds already has those of the outermost one.
local function terms(r, kind, lease, max)
  local secret, rest = string.match(r.tail, "^%d+ (%S+) %a %d+ %d+ %d+( .*)$")
  r.kind, r.lease, r.max = kind, lease, max
  r.tail = r.weight .. " " .. secret .. " " .. kind .. " " .. r.wait .. " " .. lease .. " " .. max .. rest
end
