--- @include "lib/settle"
--- @include "lib/push"
--- @include "lib/unlink"
--- @include "lib/bind"
-- take gives a resource that pick has chosen to a claim. What has room for more holders,
-- or is shared, goes to the tail of the list. What the claim is bound to already stays
-- bound for as long as it was, if that is longer.
local function take(at, st, claim, w, key, i)
  if not w.shared then
    i.claims[#i.claims + 1] = claim
    settle(at, st, key, i)
  end
  if i.listed and st.pool.free > 1 then
    unlink(at, key)
    push(at, key)
  end
  if w.bind ~= "" then
    bind(at, w.bind, key, w.bindfor, w.bound == key and w.until_then or 0)
  end
end
