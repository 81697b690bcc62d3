--- @include "state/values"
--- @include "pool/settings"
-- The counts of a pool are the field pool of its state: words, of which all but the last have a fixed width; numbers
-- stand above values_base, with 16 digits
--   moves      rises with each change, and with each resource that becomes free
--   free       those that are free, see pool/free
--   resources  of all kinds
--   gen        the revision of the last Replace that has begun, or of the last Remove after it, 13 digits
--   others     above twice values_base: resources - free - those that somebody holds. What is taken or given back,
--              and one at a time may hold, does not change it
--   parked     how many claims wait in lanes of resources, see pool/lanes
--   leaving    those that leave when their last holder gives them back
--   filled     1 once an Add or a Replace has ended: what is not in the pool then is absent
--   settings   the rest, see pool/settings
local pool_counts_form = "%d %d %d %013d %d %d %d %d "
local pool_counts_text = "^(%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d) (%S %S %S.*)$"

-- What the plain cases read and write: where the words begin or end; what they are from parked on, if nobody is parked,
-- nothing leaves and nothing is set; and there, where the words begin or end.
local pool_counts_gap = " "
-- What a plain reply says of a claim that waits: its ticket, 1 where the next to be told is one of its node, when that
-- is (ms), how many stand ahead, and the resources as here. Of a grant it is the fence, the resources, and which one.
local pool_waits = "%s %d %d %s %s"
local pool_counts_moves_end = 16
local pool_counts_free = 18
local pool_counts_free_end = 33
local pool_counts_resources = 35
local pool_counts_resources_end = 50
local pool_counts_others = 66
local pool_counts_others_end = 81
local pool_counts_parked = 83
local pool_counts_bare = "1000000000000000 1000000000000000 1 - - - - - - -"
local pool_counts_parked_end = 16
local pool_counts_leaving = 18
local pool_counts_leaving_end = 33
local pool_counts_settings = 37

-- pool_counts reads them, all zero where there are none; nil for a text that is not Berth's. moved is what moves are
-- behind this run at least.
local function pool_counts(text)
  if not text then
    return {
      resources = 0, free = 0, leased = 0, leaving = 0, gen = 0, moves = 0, moved = 1, parked = 0, filled = false,
      settings = settings_none,
    }
  end
  local moves, free, resources, gen, others, parked, leaving, filled, settings = string.match(text, pool_counts_text)
  return moves and {
    resources = resources - values_base, free = free - values_base, leased = resources - free - others + 2 * values_base,
    leaving = leaving - values_base, gen = gen + 0, moves = moves - values_base, moved = moves - values_base + 1,
    parked = parked - values_base, filled = filled == "1", settings = settings,
  }
end

-- pool_counts_write is the counterpart of pool_counts.
local function pool_counts_write(p)
  return string.format(pool_counts_form, values_base + math.max(p.moves, p.moved), values_base + p.free,
    values_base + p.resources, p.gen, 2 * values_base + p.resources - p.free - p.leased, values_base + p.parked,
    values_base + p.leaving, p.filled and 1 or 0) .. p.settings
end
