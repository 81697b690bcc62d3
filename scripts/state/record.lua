-- The record of a claim is the field c:<claim> of a state: words, and texts that have their
-- size in bytes and a colon before them. No space follows a text.
--   phase     w: waiting, at the place of its ticket, p: waiting, at another place, g: granted and not yet
--             confirmed, h: held, d: detached; an entry within one that is not yet confirmed is g too. Of a hold
--             without end a number may follow: its node is in a swarm, and this is the node's own zombie limit (ms).
--             So may one of a hold whose deadline is further off than its lease reaches: it had this longer one when
--             that was set (ms). Of a hold that somebody wants back ! and since when (ms) come last
-- Of a claim that waits these follow, moments with 13 digits:
--   alive     until when it lives (ms): its wait lease from when its node was last heard of
--   half      when half of that will be over (ms)
--   ticket    when it came (ms, or more where several came in one)
--   place     only behind p: see line/place
-- Of a hold, moments with 13 digits:
--   ticket    when it came
--   fence     the number of its grant, 16 digits
--   granted   when it was granted (ms)
--   limit     the end of its maximum hold (ms), 0 = none or not yet running
-- Then of both
--   node      whose claim it is
-- And the fixed terms, which only record_terms changes:
--   secret    what a push of its grant proves itself by, - = none
--   weight    what it takes of the capacity
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
local record_plain = "h %s %016d %s %013d " -- of a hold: ticket, fence, granted, limit
local record_stone = "!"
local record_word = "^!(.*)$"

-- What the plain cases read and write.
local record_asks = "^%S+ (%d+) %a (%d+) (%d+) (%d+) " -- of fixed terms: weight, wait, lease, max
local record_asking = "^%S+ %S+ (%d+) %a (%d+) (%d+) (%d+) " -- the same of a node and fixed terms
local record_waiting = "^[wp] %d%d%d%d%d%d%d%d%d%d%d%d%d " -- of a waiter: alive
local record_owns = "^(%S+) (.*)$" -- of a node and fixed terms
local record_gap_at = 17 -- what stands behind a node of 16 digits there
local record_lone = "^%S+ %d+ %a %d+ %d+ %d+ %-?%d+ 0:0:0:%d+:(.*)$" -- of fixed terms with no other text: wants
local record_lives = "^[wp] 0*(%d+) " -- of a waiter: alive
local record_beating = "^h %d+ (%d+) %d+ 0000000000000 (%S+) %S+ %d+ r %d+ (%d+) 0 " -- that renews: fence, node, lease
local record_renewing = "^%S+() %d+ r %d+ (%d+) 0 " -- of the terms of a hold that renews: where the secret ends, lease
-- Before the words of a record that the plain cases write, and between them; a limit that is not set; and where
-- the words of a record begin and end.
local record_waits = "w "
local record_holds = "h "
local record_given = "g "
local record_gap = " "
local record_unlimited = "0000000000000"
local record_no_limit = " 0000000000000 "
local record_from = 3
local record_phase = 2
local record_alive_end = 15
local record_half = 17
local record_half_end = 29
local record_ticket = 31
local record_ticket_end = 43
local record_fence = 17 -- of a hold
local record_fence_end = 32
local record_limit = 48
local record_node = 45 -- of a waiter, if it has 16 digits, as nodes draw it
local record_node_end = 60
local record_secret = 11 -- how long a secret is
local record_proof = 62 -- the secret of a waiter, if that is so and it has 11
local record_proof_end = 72
local record_alone = " 1 " -- behind it, of a claim of weight 1
local record_none = "- 1 " -- of such a claim without a secret
local record_weight = "^%S+ %S+ (%d+) $" -- of node, secret and weight
local record_weighs = "^ (%d+) " -- behind the secret: weight
local record_held_by = 62 -- the node of a hold

-- record_new is the record of a claim that asks. These are its fields and, of one that was
-- read, secret and kind; terms has the text behind limit as it is; held is the deadline of a
-- hold, where a step has looked it up (ms); changed says that the step has to write the
-- record, and text is what it has written. wanted is ! and since when, "" where nobody wants it.
-- Of a claim that waits, place is where it stands, and alive until when it lives (ms).
-- Ticket, fence, granted and place are texts as they are stored: nobody reckons with them.
local function record_new(node, terms)
  local weight, wait, lease, max = string.match(terms, record_asks)
  return {
    node = node, phase = "w", number = "", wanted = "", limit = 0, terms = terms, alive = 0,
    weight = weight + 0, wait = wait + 0, lease = lease + 0, max = max + 0, held = 0, changed = true,
  }
end

-- record_read returns the record, or nil for a tombstone. A waiting claim has the phase w, wherever it stands.
local function record_read(text)
  local alive, ticket, place, node, terms, secret, weight, kind, wait, lease, max
  local phase, number, wanted, fence, granted, limit = string.sub(text, 1, 1), "", "", "0", "0", 0
  if phase == "w" then
    alive, ticket, node, terms, secret, weight, kind, wait, lease, max =
      string.match(text, "^w 0*(%d+) %d+ (%d+) (%S+) ((%S+) (%d+) (%a) (%d+) (%d+) (%d+) .*)$")
    place = ticket
  elseif phase == "p" then
    alive, ticket, place, node, terms, secret, weight, kind, wait, lease, max =
      string.match(text, "^p 0*(%d+) %d+ (%d+) (%d+) (%S+) ((%S+) (%d+) (%a) (%d+) (%d+) (%d+) .*)$")
    phase = "w"
  else
    phase, number, wanted, ticket, fence, granted, limit, node, terms, secret, weight, kind, wait, lease, max =
      string.match(text,
        "^(%a)(%d*)(!?%d*) (%d+) (%d+) (%d+) 0*(%d+) (%S+) ((%S+) (%d+) (%a) (%d+) (%d+) (%d+) .*)$")
  end
  if not terms then
    return nil
  end
  return {
    node = node, phase = phase, number = number, wanted = wanted, ticket = ticket, fence = fence, granted = granted,
    place = place or fence, alive = (alive or 0) + 0, limit = limit + 0, terms = terms, weight = weight + 0,
    secret = secret, kind = kind, wait = wait + 0, lease = lease + 0, max = max + 0,
  }
end

-- record_write is the counterpart of record_read.
local function record_write(r)
  if r.phase ~= "w" then
    return r.phase .. r.number .. r.wanted .. " " .. r.ticket .. " " .. r.fence .. " " .. r.granted .. " "
      .. (r.limit == 0 and record_unlimited or string.format("%013d", r.limit)) .. " " .. r.node .. " " .. r.terms
  end
  local lives = string.format("%013d %013d ", r.alive, r.alive - math.floor(r.wait / 2))
  local place = r.place == r.ticket and "" or r.place .. " "
  return (place == "" and "w " or "p ") .. lives .. r.ticket .. " " .. place .. r.node .. " " .. r.terms
end

-- record_sums reads of a hold what a state counts: its weight, and 1 if it has no end and is confirmed, else 0; and
-- its fixed terms. Of a tombstone, or false, it returns 0, 0 and nil.
local function record_sums(text)
  local phase, terms, weight, lease, max = string.match(text or "",
    "^(%a)[%d! ]+ %S+ (%S+ (%d+) %a %d+ (%d+) (%d+) .*)$")
  if not terms then
    return 0, 0, nil
  end
  return weight + 0, lease == "0" and max == "0" and not string.find("gwp", phase, 1, true) and 1 or 0, terms
end

-- record_want has a hold be wanted back from a moment on (ms), or from an earlier one. It returns which.
local function record_want(r, ms)
  if r.wanted == "" then
    r.wanted = string.format("!%d", ms)
  end
  return string.sub(r.wanted, 2) + 0
end

-- record_terms writes another kind, lease and maximum hold (ms) into a record: those of an owner's
-- outermost entry, or another lease that a holder asks for.
local function record_terms(r, kind, lease, max)
  local first, wait, rest = string.match(r.terms, "^(%S+ %d+ )%a( %d+ )%d+ %d+( .*)$")
  r.kind, r.lease, r.max = kind, lease, max
  r.terms = first .. kind .. wait .. string.format("%d %d", lease, max) .. rest
end

-- record_owner is whom a claim is for: its own id where no owner was given.
local function record_owner(claim, r)
  local size, from = string.match(r.terms, "^%S+ %d+ %a %d+ %d+ %d+ %-?%d+ (%d+):()")
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
  local from = string.match(terms, "^%S+ %d+ %a %d+ %d+ %d+ %-?%d+ ()")
  local size, after
  for _ = 1, 4 do
    size, after = string.match(terms, "^(%d+):()", from)
    from = after + size
  end
  return string.sub(terms, after, from - 1)
end
