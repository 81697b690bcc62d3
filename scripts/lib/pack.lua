-- pack writes a record back; the counterpart of record. Its fence is text, as a
-- number it would be cut.
local function pack(r)
  return #r.node .. ":" .. r.node .. r.phase .. " " .. r.ticket .. " " .. r.fence .. " " .. r.granted
    .. " " .. r.limit .. " " .. r.tail
end
