-- pack writes a record back; the counterpart of record. Its tail may hold any bytes,
-- which format would cut.
local function pack(r)
  return string.format("%d:%s%s%s %d %s %d %d ", #r.node, r.node, r.phase, r.zombie or "",
    r.ticket, r.fence, r.granted, r.limit)
    .. r.tail
end
