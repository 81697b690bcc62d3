--- @include "state/score"
--- @include "state/values"
--- @include "state/record"
--- @include "line/place"
-- fast_first looks at the first in line of a pool, to whom a release (p) hands on what it frees: that one lives and
-- stands at the place of its ticket, and the next one need not be told. The node of the first has an id of 16 digits,
-- as nodes draw it. It returns the member, its claim, until when it lives, and its record; the earliest deadline of the
-- holds then; and the half of the wait lease of the next one, "" for none. It returns nil, and has written nothing, in
-- every other case.
local function fast_first(p, text, keys, claim)
  local state, line, sub = keys[1], keys[2], string.sub
  local call = redis.call
  local members = call("ZRANGE", line, "0", "1")
  local top = members[1]
  if not top or sub(top, place_claim - 1, place_claim - 1) ~= place_mark then
    return nil
  end
  local first = sub(top, place_claim)
  local records = call("HMGET", state, "c:" .. first, "c:" .. sub(members[2] or "", place_claim))
  local record, second = records[1] or "", records[2] or ""
  local alive = sub(record, record_from, record_alive_end)
  if sub(record, 1, record_phase) ~= record_waits or sub(record, record_node_end + 1, record_node_end + 1) ~= record_gap
    or sub(record, record_proof_end + 1, record_proof_end + #record_alone) ~= record_alone
    or sub(text, 1, values_head) >= p.head or alive <= p.now or not tonumber(alive)
    or sub(record, record_ticket, record_ticket_end) ~= sub(top, 1, place_claim - 2) then
    return nil
  end
  local due, half = alive, ""
  if p.left > 0 then
    local holds = call("ZRANGEBYSCORE", line, score_first_hold, score_last_hold, "WITHSCORES", "LIMIT", "0", "2")
    due = sub((holds[1] == "h:" .. claim and holds[4] or holds[2]) or "", score_deadline)
    if due == "" or due > alive then
      due = alive
    end
  end
  if p.waiting ~= values_line + 1 then
    half = sub(second, record_half, record_half_end)
    if sub(second, 1, record_phase) ~= record_waits or due < half then
      return nil
    end
  end
  return top, first, alive, record, due, half
end
