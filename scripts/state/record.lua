-- The record of a claim is the field c:<claim> of a state: words, and texts that have their
-- size in bytes and a colon before them. No space follows a text.
--   phase     w: waiting, g: granted and not yet confirmed, h: held, d: detached; an
--             entry within one that is not yet confirmed is g too. Of a hold without
--             end a number may follow: its node is in a swarm, and this is the node's
--             own zombie limit (ms). So may one of a hold whose deadline is further off
--             than its lease reaches: it had this longer one when that was set (ms). Of a hold
--             that somebody wants back ! and since when (ms) come last
--   node      whose claim it is
--   ticket    when it came (ms, or more where several came in one)
--   fence     the number of its grant; of a claim that waits its place, see line/place
--   granted   when it was granted (ms); of a claim that waits when its node was last heard of:
--             it lives for its wait lease from then on
--   limit     the end of its maximum hold (ms), 0 = none or not yet running
-- Then the fixed terms, which only record_terms changes:
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
local record_plain = "h %s %s %d %s %d " -- of a hold: node, ticket, fence, granted, limit
local record_stone = "!"
local record_word = "^!(.*)$"

-- What the plain cases read and write.
local record_asks = "^(%d+) %S+ %a (%d+) (%d+) (%d+) " -- of fixed terms: weight, wait, lease, max
local record_lone = "^%d+ %S+ %a %d+ %d+ %d+ %-?%d+ 0:0:0:%d+:(.*)$" -- of fixed terms with no other text: wants
local record_own = "^[gh] (%S+) %d+ (%d+) %d+ %d+ (%d+) " -- of a hold: node, fence, weight
local record_owned = "^[gh] (%S+) %d+ (%d+) %d+ %d+ (1 .*)$" -- of a hold of one: node, fence, terms
local record_beating = "^h (%S+) %d+ (%d+) %d+ 0 %d+ %S+ r %d+ (%d+) 0 " -- that renews: node, fence, lease
local record_waiter = "^w (%S+) (%d+) %d+ (%d+) (%d+) ((%d+) (%S+) %a (%d+) .*)$" -- of a waiter: node, ticket,
-- heard, limit, terms, weight, secret, wait
local record_lives = "^w (%S+) %d+ %d+ (%d+) %d+ %d+ %S+ %a (%d+) " -- of a waiter: node, heard, wait
-- Before the ticket, the fence and granted of a record that the plain cases write, and behind them.
local record_waits = "w "
local record_holds = "h "
local record_given = "g "
local record_gap = " "

-- record_new is the record of a claim that asks. These are its fields and, of one that was
-- read, secret and kind; terms has the text behind limit as it is; held is the deadline of a
-- hold, where a step has looked it up (ms); changed says that the step has to write the
-- record, and text is what it has written. wanted is ! and since when, "" where nobody wants it.
-- Of a claim that waits, place and heard are what fence and granted are of a hold.
-- Ticket, fence, granted and place are text where they were read: nobody reckons with them.
local function record_new(node, terms)
  local weight, wait, lease, max = string.match(terms, record_asks)
  return {
    node = node, phase = "w", number = "", wanted = "", ticket = 0, fence = "0", granted = 0, limit = 0, terms = terms,
    place = "0", heard = 0, weight = tonumber(weight), wait = tonumber(wait), lease = tonumber(lease),
    max = tonumber(max), held = 0, changed = true,
  }
end

-- record_read returns the record, or nil for a tombstone.
local function record_read(text)
  local phase, number, wanted, node, ticket, fence, granted, limit, terms, weight, secret, kind, wait, lease, max =
    string.match(text, "^(%a)(%d*)(!?%d*) (%S+) (%d+) (%d+) (%d+) (%d+) ((%d+) (%S+) (%a) (%d+) (%d+) (%d+) .*)$")
  if not phase then
    return nil
  end
  local waits = phase == "w"
  return {
    node = node, phase = phase, number = number, wanted = wanted, ticket = ticket, fence = waits and "0" or fence,
    granted = waits and 0 or granted, place = fence, heard = waits and tonumber(granted) or 0,
    limit = tonumber(limit), terms = terms, weight = tonumber(weight), secret = secret, kind = kind,
    wait = tonumber(wait), lease = tonumber(lease), max = tonumber(max),
  }
end

-- record_write is the counterpart of record_read. The terms may hold any bytes, which
-- format would cut.
local function record_write(r)
  local waits = r.phase == "w"
  return string.format("%s%s%s %s %d %s %d %d ", r.phase, r.number, r.wanted, r.node, r.ticket,
    waits and r.place or r.fence, waits and r.heard or r.granted, r.limit) .. r.terms
end

-- record_want has a hold be wanted back from a moment on (ms), or from an earlier one. It returns which.
local function record_want(r, ms)
  if r.wanted == "" then
    r.wanted = string.format("!%d", ms)
  end
  return string.sub(r.wanted, 2) + 0
end

-- record_alive is until when a claim that waits lives (ms).
local function record_alive(r)
  return r.heard + r.wait
end

-- record_terms writes another kind, lease and maximum hold (ms) into a record: those of an owner's
-- outermost entry, or another lease that a holder asks for.
local function record_terms(r, kind, lease, max)
  local secret, rest = string.match(r.terms, "^%d+ (%S+) %a %d+ %d+ %d+( .*)$")
  r.kind, r.lease, r.max = kind, lease, max
  r.terms = r.weight .. " " .. secret .. " " .. kind .. " " .. r.wait .. " " .. lease .. " " .. max .. rest
end

-- record_owner is whom a claim is for: its own id where no owner was given.
local function record_owner(claim, r)
  local size, from = string.match(r.terms, "^%d+ %S+ %a %d+ %d+ %d+ %-?%d+ (%d+):()")
  if size == "0" then
    return claim
  end
  return string.sub(r.terms, from, from + size - 1)
end

-- record_extra is the text of a record that only the kind reads.
local function record_extra(terms)
  local extra = string.match(terms, record_lone)
  if extra then
    return extra
  end
  local from = string.match(terms, "^%d+ %S+ %a %d+ %d+ %d+ %-?%d+ ()")
  local size, after
  for _ = 1, 4 do
    size, after = string.match(terms, "^(%d+):()", from)
    from = after + size
  end
  return string.sub(terms, after, from - 1)
end
