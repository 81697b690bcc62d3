-- forever_count is 1 for a record that the state counts as forever, else 0: its hold has
-- no end, and is confirmed.
local function forever_count(r)
  return r.lease == 0 and r.max == 0 and r.phase ~= "g" and r.phase ~= "w" and 1 or 0
end
