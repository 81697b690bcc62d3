-- The counts of a pool are the field pool of its state: words
--   resources  of all kinds
--   free       those that are in the list
--   leased     those that somebody holds
--   leaving    those that leave when their last holder gives them back
--   gen        the last Replace that has begun
--   moves      how often anything has changed
local pool_counts_form = "%d %d %d %d %d %d"

-- pool_counts reads them; nil for a text that is not Berth's.
local function pool_counts(text)
  local n = {}
  for word in string.gmatch(text or "0 0 0 0 0 0", "%d+") do
    n[#n + 1] = tonumber(word)
  end
  return n[6] and { resources = n[1], free = n[2], leased = n[3], leaving = n[4], gen = n[5], moves = n[6] }
end
