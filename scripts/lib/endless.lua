-- endless says whether a record's hold has no end at all.
local function endless(r)
  return r.lease == 0 and r.max == 0
end
