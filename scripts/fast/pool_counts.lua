--- @include "state/int"
--- @include "state/values"
--- @include "pool/counts"
-- plain_line reads the settings of a kept pool in which nothing leaves, nil for others; whether claims wait in lanes;
-- and whether somebody stands in line. line is the text of its values from waiting to pause, counts that from
-- parked on.
local function plain_line(line, counts)
  local parked = string.sub(counts, 1, pool_counts_parked_end)
  if string.sub(line, values_pool_from) ~= values_pool
    or string.sub(counts, pool_counts_leaving, pool_counts_leaving_end) ~= values_unused then
    return nil
  end
  return string.sub(counts, pool_counts_settings), parked ~= values_unused,
    string.sub(line, 1, values_pool_from - 2) - values_line ~= parked - values_base
end

-- plain_none says whether nothing is free: resources and used are as they are stored.
local function plain_none(counts, resources, used)
  local apart = string.sub(counts, pool_counts_apart, pool_counts_apart_end)
  if apart == pool_counts_none then
    return resources == used
  end
  return resources - used == apart - pool_counts_twice
end

-- plain_counts is the counts anew, nil where they stay as they are; apart and others are by how much these change.
local function plain_counts(counts, apart, others)
  if apart == 0 and others == 0 then
    return nil
  end
  return string.sub(counts, 1, pool_counts_apart - 1)
    .. int(string.sub(counts, pool_counts_apart, pool_counts_apart_end) + apart) .. pool_counts_gap
    .. int(string.sub(counts, pool_counts_others, pool_counts_others_end) + others)
    .. string.sub(counts, pool_counts_others_end + 1)
end
