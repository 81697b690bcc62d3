-- What only some cases of an acquire or a release read is the last argument: words, and behind them the name, any
-- bytes. Of an acquire
--   waits    0: it only tries, 1: it waits, 2: without end
--   wait     its wait lease (ms)
--   lane     see line/place
--   policy   what is to happen where another capacity is stored: stored, strict or override; - of other kinds
--   channel  what stands before the node in the name of its channel: any text without a brace, which ends it
--   name
-- Of a release
--   linger   of the node (ms)
--   stays    how long a tombstone stays (ms), 0 = none
--   node     of the claim
--   channel  as above
--   name     with its size in bytes and a colon before it
local ask_acquire = "^(%d) (%d+) (%d+) (%S+) ([^{]*){(.*)$"
local ask_waits = "^[12] (%d+) (%d+) " -- wait and lane of a claim that waits
local ask_release = "^(%d+) (%d+) (%S+) ([^{]*){%d+:(.*)$"
local ask_told = "^%d+ %d+ %S+ ([^{]*){(.*)$" -- channel, and the name with its size
