-- The values of a name, which every step changes, are the field v of its state: words, of which
-- the first ones have a fixed width, so that their texts compare like the numbers
--   fmt      the number of the name, see state/feature
--   fence    the last one, 16 digits; of a pool turns are among them, see pool/free
--   exp      when the Redis keys of the name expire, or would, if nothing kept them (ms, 13 digits);
--            no later than 9999999999999, as due is
--   due      the earliest deadline of a hold (ms, 13 digits), 9999999999999 = none with an end
--   ticket   the last one, 13 digits
--   busy     when the name last needed its fat form (ms, 13 digits)
--   used     values_base + the weight of all holds together, 16 digits
--   waiting  values_line + how many claims wait in line, 7 digits or more; dead ones may be among them
--   cap      values_base + the capacity, 16 digits: 1 of a lock and of a pool
--   gone     how many tombstones there are
--   forever  how many holds have no end, and are confirmed
--   keep     1: the name stays when it is idle
--   pause    when the pause of the name ends (ms), 0 = it is not paused; one that has passed counts as 0
--   look     the rank in the line below which patrol looks for dead claims next, 0 = from the end
--   rev      the revision: rises with each call of an operator's and each change of a setting, and with what is
--            added to a pool: max(last + 1, the server's ms); see state/revision
-- Each entry of a lock's owner has the weight 1, so used is how many entries there are. Of a pool
-- used is how many claims hold a resource, and keep is 1 while it has resources that are not leaving.
-- Counts are stored above these numbers, so that they have a fixed width and do not begin with a
-- zero: the embedded server would read such a number as an octal one.
local values_base = 1000000000000000
local values_line = 1000000

-- Zeros in front of a moment are left out for the same reason.
local values_text = "^(%d+) 0*(%d+) 0*(%d+) 0*(%d+) 0*(%d+) 0*(%d+) (%d+) (%d+) (%d+) (%-?%d+ %-?%d+ %d+ %d+ %d+ %d+)$"
local values_form = "%d %016d %013d %013d %013d %013d %d %d %d "
-- The words from gone on, which few names have: of all others they are these.
local values_few = "^(%-?%d+) (%-?%d+) (%d+) (%d+) (%d+) (%d+)$"
local values_fewest = "%d %d %d %d %d %d"
local values_none_of_them = "0 0 0 0 0 0"
local values_quiet = "^0 0 (%d+) 0 0 (%d+)$" -- and these of a pool, and of what an operator has changed
local values_quietly = "0 0 %d 0 0 %d"

-- What the plain cases read and write: where the words begin or end, some of them as they are mostly, and
-- the forms of others.
local values_number = "^%d+"
local values_known = "3 "
local values_fence_from = 3
local values_now_end = 13 -- of the milliseconds of a fence alone
local values_millis = 15 -- the end of the milliseconds of a fence
local values_head = 18 -- the end of the fence
local values_exp = 20
local values_due = 34
local values_due_end = 46
local values_ticket = 48
local values_ticket_end = 60
local values_busy = 62
local values_busy_end = 74
local values_used = 76
local values_used_end = 91
local values_waiting = 93
local values_waiting_end = 99
local values_cap = 101
local values_cap_end = 116
local values_calm_from = 118
local values_calm_end = 124
local values_gap = " "
local values_calm = "0 0 0 0" -- gone, forever, keep and pause
local values_pool = "1000000000000001 0 0 1 0" -- cap to pause of a pool that is kept
local values_alone = "1000000 1000000000000001 0 0 1 0" -- and waiting before that: nobody
local values_pool_from = 9 -- where cap begins there
local values_nobody = "1000000" -- waits
local values_lone = "1000000 1000000000000001 0 0 0 0" -- waiting to pause, of a lock
local values_newer = "4" -- above all texts with this number, and below those with a later one
local values_calm_cap = 9 -- where the capacity begins and ends in such a text
local values_calm_cap_end = 24
local values_unused = "1000000000000000"
local values_one = "1000000000000001"
local values_look = "^ (%d+)( .*)$"
-- Of a pool that is kept: fence, exp, due, ticket, used, waiting, and the words from cap on.
local values_kept = "^3 (%d+) (%d+) (%d+) (%d+) %d+ (%d+) (%d+) (1000000000000001 0 0 1 0 .*)$"
local values_fence = "%016d"
local values_ms = "%013d"
local values_none = "9999999999999" -- no hold with an end
local values_last = 9999999999999
local values_recent = 60000 -- for how long it is known what an operator has changed (ms)

-- values_now is the server's time as a fence. The clock of a test may have nine digits.
local function values_now(t)
  return (#t[1] < 10 and "0" or "") .. t[1] .. string.sub("00000", #t[2]) .. t[2]
end

-- values_us is that as a name that is granted now begins: its number, and the fence.
local function values_us(t)
  return values_known .. values_now(t)
end
