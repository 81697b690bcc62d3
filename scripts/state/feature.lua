-- A name's number, the first word of its values, is that of the newest feature that the name
-- uses:
--   3: all that there is
-- feature_newest is the newest one that these scripts know. Of a name with a higher number they
-- write nothing, and answer incompatible; likewise of one with a number below feature_first, as
-- names had before v0.1.0.
local feature_first = 3
local feature_newest = 3
