-- The counts of a pool are the field pool of its state: words
--   resources  of all kinds
--   free       those that are free, see pool/free
--   leased     those that somebody holds
--   leaving    those that leave when their last holder gives them back
--   gen        the revision of the last Replace that has begun, or of the last Remove after it
--   moves      rises with each change, and with each resource that becomes free
--   parked     how many claims wait in lanes of resources, see pool/lanes
--   filled     1 once an Add or a Replace has ended: what is not in the pool then is absent
--   settings   the rest, see pool/settings
local pool_counts_form = "%d %d %d %d %d %d %d %d %s"
local pool_counts_first = "0 0 0 0 0 0 0 0 - - - - - - -"

-- What the plain cases read where nothing is leaving: resources, free, leased, leaving and gen, moves,
-- parked, and the words from filled on.
local pool_counts_words = "^([1-9]%d*) (%d+) (%d+) (0 %d+) (%d+) (%d+) (%d .*)$"
local pool_counts_gap = " "
-- All that stands before the moves, resources, moves, and all behind them.
local pool_counts_moves = "^(([1-9]%d*) %d+ %d+ 0 %d+ )(%d+)( .*)$"

-- pool_counts reads them; nil for a text that is not Berth's. moved is what moves are behind this run at least.
local function pool_counts(text)
  local resources, free, leased, leaving, gen, moves, parked, filled, settings = string.match(text or pool_counts_first,
    "^(%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d) (%S %S %S.*)$")
  return moves and {
    resources = resources + 0, free = free + 0, leased = leased + 0, leaving = leaving + 0, gen = gen + 0,
    moves = moves + 0, moved = moves + 1, parked = parked + 0, filled = filled == "1", settings = settings,
  }
end
