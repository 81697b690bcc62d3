-- record reads a claim's record. It returns nil for a tombstone. The text is
--   <size>:<node> then words: phase ticket fence granted limit, and the tail,
-- which never changes: weight secret kind wait lease max priority, and the owner, the
-- label and the metadata as length-prefixed texts, and one more that only the
-- primitive reads.
--   phase     w: waiting, g: granted and not yet confirmed, h: held, d: detached; an
--             entry within one that is not yet confirmed is g too. Of a hold without
--             end a number may follow: its node is in a swarm, and this is the node's
--             own zombie limit (ms)
--   ticket    when it came
--   fence     the number of its grant, 0 while it waits
--   granted   when it was granted (ms), 0 while it waits
--   limit     the end of its maximum hold (ms), 0 = none or not yet running
--   weight    what it takes of the capacity
--   secret    what a push of its grant proves itself by, - = none
--   kind      r: renews by itself, f: fixed
--   wait      wait lease (ms)
--   lease     lease once it is held (ms), 0 = forever
--   max       maximum hold (ms), 0 = none
--   priority  -128 to 127
-- Ticket, fence and granted stay text: nothing is reckoned with them.
local function record(text)
  local size, at = string.match(text, "^(%d+):()")
  if not size then
    return nil
  end
  local node = string.sub(text, at, at + size - 1)
  local phase, zombie, ticket, fence, granted, limit, tail, weight, secret, kind, wait, lease, max = string.match(
    text, "^(%a)(%d*) (%d+) (%d+) (%d+) (%d+) ((%d+) (%S+) (%a) (%d+) (%d+) (%d+) .*)$", at + size)
  return {
    node = node, phase = phase, zombie = zombie, ticket = ticket, fence = fence, granted = granted,
    limit = tonumber(limit), tail = tail, weight = tonumber(weight), secret = secret, kind = kind,
    wait = tonumber(wait), lease = tonumber(lease), max = tonumber(max),
  }
end
