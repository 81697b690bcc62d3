--- @include "lib/int"
-- itemtext writes an item; the counterpart of item.
local function itemtext(i)
  local w = { i.max, int(i.expiry), int(i.ends), int(i.pend), i.gen, i.leaving and 1 or 0, #i.claims }
  for _, claim in ipairs(i.claims) do
    w[#w + 1] = claim
  end
  w[#w + 1] = i.reason
  return table.concat(w, " ")
end
