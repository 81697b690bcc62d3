-- A name's number, the first word of its values, is that of the newest feature that the name
-- uses:
--   2: all that there is
-- feature_newest is the newest one that these scripts know. Of a name with a higher number they
-- write nothing, and answer incompatible; likewise of one with a number below feature_first, as
-- names had before anything was released.
local feature_first = 2
local feature_newest = 2
