-- The record of a claim is the field c:<claim> of a state: words, and texts that have their
-- size in bytes and a colon before them. No space follows a text.
--   node      whose claim it is, a text
--   phase     w: waiting, g: granted and not yet confirmed, h: held, d: detached; an
--             entry within one that is not yet confirmed is g too. Of a hold without
--             end a number may follow: its node is in a swarm, and this is the node's
--             own zombie limit (ms)
--   ticket    when it came (ms, or more where several came in one)
--   fence     the number of its grant, 0 while it waits
--   granted   when it was granted (ms), 0 while it waits
--   limit     the end of its maximum hold (ms), 0 = none or not yet running
-- Then the tail, which only record_terms changes:
--   weight    what it takes of the capacity
--   secret    what a push of its grant proves itself by, - = none
--   kind      r: renews by itself, f: fixed
--   wait      wait lease (ms)
--   lease     lease once it is held (ms), 0 = forever
--   max       maximum hold (ms), 0 = none
--   priority  -128 to 127
--   owner     whom it is for, a text: empty for the claim itself
--   label     of the client, a text
--   metadata  keys and values in turn, each a text, together a text
--   wants     a text that only a pool's claim has, see pool/wants
-- Or it is a tombstone: record_stone, and what has become of the claim, gone or released.
local record_stone = "!"
local record_word = "^!(.*)$"

-- A text begins with the node, behind its size.
local record_node = "^(%d+):()"
local record_node_form = "%d:%s"

-- What the plain cases read and write; the patterns follow the node.
local record_own = "^[gh] %d+ (%d+) %d+ %d+ (%d+)" -- of a hold: fence, weight
local record_beating = "^h %d+ (%d+) %d+ 0 (%d+) %S+ r %d+ (%d+) 0 " -- that renews: fence, weight, lease
local record_heir = "^w (%d+) %d+ %d+ (%d+) ((%d+) (%S+) .*)$" -- of a waiter: ticket, limit, tail, weight, secret
local record_held_form = "%d:%sh %s %s %s 0 " -- size, node, ticket, fence, granted; then the tail
local record_heir_form = "g %s %s %d %s " -- ticket, fence, granted, limit; then the tail

-- record_new is the record of a claim that asks. These are its fields and, of one that was
-- read, secret and kind; tail has the text behind limit as it is; held is the deadline of a
-- hold, where a step has looked it up (ms); changed says that the step has to write the
-- record, and text is what it has written.
-- Ticket, fence and granted are text where they were read: nothing is reckoned with them.
local function record_new(node, weight, wait, lease, max, tail)
  return {
    node = node, phase = "w", zombie = "", ticket = 0, fence = "0", granted = 0, limit = 0, tail = tail,
    weight = weight, wait = wait, lease = lease, max = max, held = 0, changed = true,
  }
end

-- record_read returns the record, or nil for a tombstone.
local function record_read(text)
  local size, from = string.match(text, record_node)
  if not size then
    return nil
  end
  local node = string.sub(text, from, from + size - 1)
  local phase, zombie, ticket, fence, granted, limit, tail, weight, secret, kind, wait, lease, max = string.match(
    text, "^(%a)(%d*) (%d+) (%d+) (%d+) (%d+) ((%d+) (%S+) (%a) (%d+) (%d+) (%d+) .*)$", from + size)
  return {
    node = node, phase = phase, zombie = zombie, ticket = ticket, fence = fence, granted = granted,
    limit = tonumber(limit), tail = tail, weight = tonumber(weight), secret = secret, kind = kind,
    wait = tonumber(wait), lease = tonumber(lease), max = tonumber(max),
  }
end

-- record_write is the counterpart of record_read. The tail may hold any bytes, which
-- format would cut.
local function record_write(r)
  return string.format("%d:%s%s%s %d %s %d %d ",
    #r.node, r.node, r.phase, r.zombie, r.ticket, r.fence, r.granted, r.limit) .. r.tail
end

-- record_terms writes another kind, lease and maximum hold (ms) into a record: an entry
-- of an owner that holds already has those of the outermost one.
local function record_terms(r, kind, lease, max)
  local secret, rest = string.match(r.tail, "^%d+ (%S+) %a %d+ %d+ %d+( .*)$")
  r.kind, r.lease, r.max = kind, lease, max
  r.tail = r.weight .. " " .. secret .. " " .. kind .. " " .. r.wait .. " " .. lease .. " " .. max .. rest
end

-- record_owner is whom a claim is for: its own id where no owner was given.
local function record_owner(claim, r)
  local size, from = string.match(r.tail, "^%d+ %S+ %a %d+ %d+ %d+ %-?%d+ (%d+):()")
  if size == "0" then
    return claim
  end
  return string.sub(r.tail, from, from + size - 1)
end

-- record_extra is the text of a record that only the kind reads.
local function record_extra(tail)
  local from = string.match(tail, "^%d+ %S+ %a %d+ %d+ %d+ %-?%d+ ()")
  local size, after
  for _ = 1, 4 do
    size, after = string.match(tail, "^(%d+):()", from)
    from = after + size
  end
  return string.sub(tail, after, from - 1)
end
