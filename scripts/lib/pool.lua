--- @include "lib/open"
-- pool is open for a pool, whose keys are state, line, items, free and bindings. The counts are
-- in st.pool: resources of all kinds, those that are free (in the list), that are
-- leased, that leave when they come back; the last Replace; and moves, which grows
-- with every change. It also returns the resource that the claim holds, false for
-- none.
local function pool(keys, linger, channel, name, claim)
  local at, st, text, newer, counts, resource = open(keys[1], keys[2], linger, channel, name, claim, "pool",
    "r:" .. (claim or ""))
  at.items, at.free, at.bindings = keys[3], keys[4], keys[5]
  at.more = { at.items, at.free, at.bindings }
  local n = {}
  for word in string.gmatch(counts or "0 0 0 0 0 0", "%d+") do
    n[#n + 1] = tonumber(word)
  end
  newer = newer or not n[6] and 0 or nil
  st.pool = { resources = n[1], free = n[2], leased = n[3], leaving = n[4], gen = n[5], moves = n[6] }
  return at, st, text, newer, resource
end
