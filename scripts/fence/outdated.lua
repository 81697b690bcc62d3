-- outdated says whether a fence may not be admitted, and returns the greatest
-- one that was, as text: it is kept in the field "fence" of a hash, "0" before
-- the first. Both are compared as text, which is exact for any length. What is
-- no whole number above 0 is outdated, and so is every fence where something
-- else is kept: a guard that cannot tell admits nothing.
local function outdated(key, fence)
  local kept = redis.call("HGET", key, "fence") or "0"
  local whole = "^[1-9]%d*$"
  if not string.find(fence, whole) or kept ~= "0" and not string.find(kept, whole) then
    return true, kept
  end
  return #kept > #fence or #kept == #fence and kept > fence, kept
end
