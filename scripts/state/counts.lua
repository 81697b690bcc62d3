-- The counts of a name, which every step changes, are one field of its state:
--   cap used waiting gone forever keep
--   cap      the capacity, 1 of a lock and of a pool
--   used     the weight of all holds together
--   waiting  how many claims wait in line
--   gone     how many tombstones there are
--   forever  how many holds have no end, and are confirmed
--   keep     1: the name stays when it is idle
local counts_text = "^(%d+) (%-?%d+) (%-?%d+) (%-?%d+) (%-?%d+) (%d+)$"
local counts_form = "%d %d %d %d %d %d"
local counts_none = "0 0 0 0 0 0"

-- Of a calm name nobody waits, and nothing keeps the expiry away.
local counts_calm = "^(%d+) (%d+) 0 0 0 0$"
local counts_calm_form = "%s %d 0 0 0 0"

-- Of one with a line, nothing keeps the expiry away.
local counts_line = "^(%d+) (%d+) (%d+) 0 0 0$"
local counts_line_form = "%s %s %d 0 0 0"
