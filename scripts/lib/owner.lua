-- owner says whom a claim is for: its own id where no owner was given.
local function owner(claim, r)
  local size, from = string.match(r.tail, "^%d+ %S+ %a %d+ %d+ %d+ %-?%d+ (%d+):()")
  if size == "0" then
    return claim
  end
  return string.sub(r.tail, from, from + size - 1)
end
