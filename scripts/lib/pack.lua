--- @include "lib/int"
-- pack writes a record back; the counterpart of record.
local function pack(r)
  return table.concat({
    r.weight, r.wait, r.lease, r.max, r.kind, r.phase, r.priority,
    int(r.ticket), int(r.fence), int(r.granted), int(r.limit),
    #r.node .. ":" .. r.node .. r.rest,
  }, " ")
end
