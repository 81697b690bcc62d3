--- @include "state/score"
--- @include "state/values"
--- @include "state/record"
--- @include "line/place"
--- @include "wake/wake"
-- fast_handoff takes a hold back that fast_release has looked at (p), and grants to the first in
-- line, if that one lives and stands at the place of its ticket, the name is full with it, and the
-- next one need not be told. The node of the first has an id of 16 digits, as nodes draw it. top and behind
-- are the first two members of the line; top is false where they are still to be read.
local function fast_handoff(p, v, keys, channel, name, claim, top, behind)
  local state, line, text, sub = keys[1], keys[2], v[1], string.sub
  local call = redis.call
  if top == false then
    local members = call("ZRANGE", line, "0", "1")
    top, behind = members[1], members[2]
  end
  if not top or sub(top, place_claim - 1, place_claim - 1) ~= place_mark then
    return nil
  end
  local first, next_up = sub(top, place_claim), sub(behind or "", place_claim)
  local records = call("HMGET", state, "c:" .. first, "c:" .. next_up)
  local record, second = records[1] or "", records[2] or ""
  local alive, node = sub(record, record_from, record_alive_end), sub(record, record_node, record_node_end)
  local rest = sub(record, record_node_end + 2)
  local secret, weight = sub(rest, 1, record_secret), "1"
  if sub(rest, record_secret + 1, record_secret + 3) ~= record_alone then
    secret, weight = string.match(rest, record_proof)
  end
  if sub(record, 1, record_phase) ~= record_waits or sub(record, record_node_end + 1, record_node_end + 1) ~= record_gap
    or not weight or sub(text, 1, values_head) >= p.head
    or p.left + weight ~= sub(text, values_cap, values_cap_end) - values_base or alive <= p.now
    or sub(record, record_ticket, record_ticket_end) ~= sub(top, 1, place_claim - 2) then
    return nil
  end
  local due = alive
  if p.left > 0 then
    local holds = call("ZRANGEBYSCORE", line, score_first_hold, score_last_hold, "WITHSCORES", "LIMIT", "0", "2")
    due = sub((holds[1] == "h:" .. claim and holds[4] or holds[2]) or "", score_deadline)
    if due == "" or due > alive then
      due = alive
    end
  end
  if p.waiting ~= values_line + 1 and (sub(second, 1, record_phase) ~= record_waits
    or due < sub(second, record_half, record_half_end)) then
    return nil
  end
  call("ZREM", line, "h:" .. claim, top)
  call("HDEL", state, "c:" .. claim)
  call("ZADD", line, score_held .. alive, "h:" .. first)
  local fence, left = sub(p.head, values_fence_from), string.format("%d", alive - p.now)
  call("HSET", state,
    "v", p.head .. sub(text, values_head + 1, values_due - 1) .. due .. sub(text, values_due_end + 1, values_busy - 1)
      .. p.now .. values_gap .. sub(text, values_cap, values_cap_end) .. values_gap .. string.format("%d", p.waiting - 1)
      .. sub(text, values_waiting_end + 1),
    "c:" .. first, record_given .. sub(record, record_ticket, record_ticket_end) .. record_gap .. fence .. record_gap
      .. p.now .. record_gap .. record_unlimited .. record_gap .. node .. record_gap .. rest)
  redis.pcall("PUBLISH", channel .. node, string.format(wake_granted, #name) .. name
    .. string.format(wake_size, #first) .. first .. wake_fence .. fence
    .. string.format(wake_size, #left) .. left .. wake_nothing .. string.format(wake_size, #secret) .. secret)
  return p.reply
end
