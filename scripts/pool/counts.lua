--- @include "state/values"
--- @include "pool/settings"
-- The counts of a pool are the field pool of its state: words, of which all but the last have a fixed width; numbers
-- stand above values_base, with 16 digits
--   resources  of all kinds
--   gen        the revision of the last Replace that has begun, or of the last Remove after it, 13 digits
--   apart      above twice values_base: resources - free - used, see state/values; free are those of pool/free
--   others     above twice values_base: resources - free - those that somebody holds. What one at a time may hold
--              changes neither this nor apart when it is taken or given back
--   parked     how many claims wait in lanes of resources, see pool/lanes
--   leaving    those that leave when their last holder gives them back
--   filled     1 once an Add or a Replace has ended: what is not in the pool then is absent
--   settings   the rest, see pool/settings
local pool_counts_form = "%d %013d %d %d %d %d %d "
local pool_counts_text = "^(%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d) (%S %S %S.*)$"

-- What the plain cases read and write: where the words begin or end; what they are from parked on, if nobody is parked,
-- nothing leaves and nothing is set; and there, where the words begin or end.
local pool_counts_gap = " "
-- What a plain reply says of a claim that waits: its ticket, 1 where the next to be told is one of its node, when that
-- is (ms), how many stand ahead, and the resources as here. Of a grant it is the fence, the resources, and which one.
local pool_waits = "%s %d %d %s %s"
local pool_counts_resources_end = 16
local pool_counts_apart = 32
local pool_counts_apart_end = 47
local pool_counts_others = 49
local pool_counts_others_end = 64
local pool_counts_parked = 66
local pool_counts_none = "2000000000000000" -- apart and others, mostly
local pool_counts_twice = 2000000000000000
local pool_counts_bare = "1000000000000000 1000000000000000 1 - - - - - - -"
local pool_counts_parked_end = 16
local pool_counts_leaving = 18
local pool_counts_leaving_end = 33
local pool_counts_settings = 37

-- pool_counts reads them, all zero where there are none; nil for a text that is not Berth's. used is what the values
-- say, as they were read.
local function pool_counts(text, used)
  if not text then
    return {
      resources = 0, free = 0, leased = 0, leaving = 0, gen = 0, parked = 0, filled = false, settings = settings_none,
    }
  end
  local resources, gen, apart, others, parked, leaving, filled, settings = string.match(text, pool_counts_text)
  return resources and {
    resources = resources - values_base, free = resources - values_base - used - (apart - pool_counts_twice),
    leased = used + apart - others, leaving = leaving - values_base, gen = gen + 0,
    parked = parked - values_base, filled = filled == "1", settings = settings,
  } or nil
end

-- pool_counts_write is the counterpart of pool_counts; used is how many claims hold a resource.
local function pool_counts_write(p, used)
  local kept = pool_counts_twice + p.resources - p.free
  return string.format(pool_counts_form, values_base + p.resources, p.gen, kept - used, kept - p.leased,
    values_base + p.parked, values_base + p.leaving, p.filled and 1 or 0) .. p.settings
end
