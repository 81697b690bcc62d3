-- A name's number, the field fmt of its state, is that of the newest feature that the
-- name uses:
--   1: all that there is
-- feature_newest is the newest one that these scripts know. Of a name with a higher
-- number they write nothing, and answer incompatible.
local feature_newest = 1
