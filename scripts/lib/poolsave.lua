--- @include "lib/save"
-- poolsave is save for a pool. While there are resources that stay, none of its keys
-- expires.
local function poolsave(at, st, furthest, ...)
  local p = st.pool
  st.cap, st.keep = 1, p.resources > p.leaving and 1 or 0
  local counts = string.format("%d %d %d %d %d %d", p.resources, p.free, p.leased, p.leaving, p.gen, p.moves + 1)
  save(at, st, furthest, "pool", counts, ...)
end
