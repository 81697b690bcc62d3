-- The lane of a claim that waits is its score in the line, three digits: 2 * (127 - its priority),
-- so that the higher priority comes first. LIFO claims stand in the lane behind it, one more.
-- The place of a claim that waits is a text of digits, which stands with the claim in the line:
-- the members of a lane are in the order of their bytes. It begins with the 13 digits of the
-- ticket; digits behind those are a fraction, which makes room between two neighbours, see
-- owner/place. A reply and a restore name it behind the three digits of its lane.
local place_member = "^(%d+)%-(.+)$"
local place_whole = 13
local place_ticket = "%013d"
local place_mark = "-"
local place_claim = 15 -- where the claim begins, behind a place that is a ticket
local place_told = "%03d %s"
local place_behind = " "
local place_telling = "^(%d+) (%d+) ?(.*)$"
