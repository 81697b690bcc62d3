-- record reads a claim's record: eleven words, then length-prefixed texts
-- (node, owner, label, metadata) that stay packed except for the node.
-- It returns nil for a tombstone.
--   weight    what it takes of the capacity
--   wait      wait lease (ms)
--   lease     lease once it is held (ms), 0 = forever
--   max       maximum hold (ms), 0 = none
--   kind      r: renews by itself, f: fixed
--   phase     w: waiting, g: granted and not yet confirmed, h: held, d: detached
--   priority  -128 to 127
--   ticket    when it came
--   fence     the number of its grant, 0 while it waits
--   granted   when it was granted (ms)
--   limit     the end of its maximum hold (ms), 0 = none or not yet running
local function record(text)
  local weight, wait, lease, max, kind, phase, priority, ticket, fence, granted, limit, size, rest = string.match(
    text, "^(%d+) (%d+) (%d+) (%d+) (%a) (%a) (%-?%d+) (%d+) (%d+) (%d+) (%d+) (%d+):(.*)$")
  if not weight then
    return nil
  end
  size = tonumber(size)
  return {
    weight = tonumber(weight),
    wait = tonumber(wait),
    lease = tonumber(lease),
    max = tonumber(max),
    kind = kind,
    phase = phase,
    priority = tonumber(priority),
    ticket = tonumber(ticket),
    fence = tonumber(fence),
    granted = tonumber(granted),
    limit = tonumber(limit),
    node = string.sub(rest, 1, size),
    rest = string.sub(rest, size + 1),
  }
end
