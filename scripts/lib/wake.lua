--- @include "lib/int"
-- wake appends a message for a node: length-prefixed fields, published by tell
-- when all is written.
local function wake(out, channel, ...)
  local parts = {}
  for i = 1, select("#", ...) do
    local field = select(i, ...)
    field = type(field) == "number" and int(field) or field
    parts[i] = string.format("%d:", #field) .. field
  end
  out[#out + 1] = { channel, table.concat(parts) }
end
