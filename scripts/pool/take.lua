--- @include "pool/free"
--- @include "pool/settle"
--- @include "pool/binding"
--- @include "pool/settings"
-- take gives a claim what pick has chosen. A resource with room for more holders, or a shared one,
-- goes to the tail of the free ones. A binding to it does not become shorter.
local function take(at, st, claim, chosen)
  local key, i, w = chosen.key, chosen.item, chosen.wants
  if not w.shared then
    i.claims[#i.claims + 1] = claim
    settle(at, st, key, i)
  end
  if i.listed then
    free_push(at, st, key)
  end
  if w.bind ~= "" then
    local lasts = w.bindfor or settings_binds(at, st, key, i)
    binding_begin(at, w.bind, key, lasts, w.bound == key and w.until_then or 0)
  end
end
