--- @include "state/score"
--- @include "state/values"
--- @include "state/record"
--- @include "state/ask"
--- @include "line/place"
--- @include "wake/wake"
-- fast_handoff takes a hold back that fast_release has looked at, and grants to the first in
-- line, if that one lives and stands at the place of its ticket, the name is full with it, and the
-- next one need not be told. The node of the first has an id of 16 digits, as nodes draw it. left and due are what
-- fast_release has found; top and behind are the first two members of the line; top is false where they are still
-- to be read.
local function fast_handoff(t, left, due, v, keys, claim, asked, top, behind)
  local state, line, text, sub, format = keys[1], keys[2], v[1], string.sub, string.format
  local call = redis.call
  if top == false then
    local members = call("ZRANGE", line, "0", "1")
    top, behind = members[1], members[2]
  end
  local head = values_us(t)
  local now = sub(head, values_fence_from, values_millis)
  if not top or due <= now or sub(top, place_claim - 1, place_claim - 1) ~= place_mark then
    return nil
  end
  local first, mine = sub(top, place_claim), "h:" .. claim
  local records = call("HMGET", state, "c:" .. first, "c:" .. sub(behind or "", place_claim))
  local record, second, waiting = records[1] or "", records[2] or "", sub(text, values_waiting, values_waiting_end)
  local alive, node = sub(record, record_from, record_alive_end), sub(record, record_node, record_node_end)
  local secret, weight, count, lasts = sub(record, record_proof, record_proof_end), 1, tonumber(waiting), tonumber(alive)
  if sub(record, record_proof_end + 1, record_proof_end + #record_alone) ~= record_alone then
    weight = string.match(record, record_weighs, record_proof_end + 1)
  end
  if sub(record, 1, record_phase) ~= record_waits or sub(record, record_node_end + 1, record_node_end + 1) ~= record_gap
    or not weight or left + weight ~= sub(text, values_cap, values_cap_end) - values_base
    or not count or not lasts or sub(text, 1, values_head) >= head or alive <= now
    or sub(record, record_ticket, record_ticket_end) ~= sub(top, 1, place_claim - 2) then
    return nil
  end
  due = alive
  if left > 0 then
    local holds = call("ZRANGEBYSCORE", line, score_first_hold, score_last_hold, "WITHSCORES", "LIMIT", "0", "2")
    due = holds[2]
    if holds[1] == mine then
      due = holds[4]
    elseif not call("ZSCORE", line, mine) then
      return nil
    end
    due = sub(due or "", score_deadline)
    if due == "" or due > alive then
      due = alive
    end
  end
  if count > values_line + 1 and (sub(second, 1, record_phase) ~= record_waits
    or due < sub(second, record_half, record_half_end)) then
    return nil
  end
  call("ZREM", line, mine, top)
  call("HDEL", state, "c:" .. claim)
  call("ZADD", line, score_held .. alive, "h:" .. first)
  local fence = sub(head, values_fence_from)
  call("HSET", state,
    "v", head .. sub(text, values_head + 1, values_due - 1) .. due .. sub(text, values_due_end + 1, values_busy - 1)
      .. now .. sub(text, values_cap - 1, values_cap_end + 1) .. format("%d", count - 1)
      .. sub(text, values_waiting_end + 1),
    "c:" .. first, record_given .. sub(top, 1, place_claim - 2) .. record_gap .. fence .. record_gap .. now
      .. record_no_limit .. sub(record, record_node))
  local channel, name = string.match(asked, ask_told)
  redis.pcall("PUBLISH", channel .. node, wake_granted .. name .. format(wake_size, #first) .. first .. wake_fence
    .. fence .. format(wake_left, lasts - now) .. wake_secret .. secret)
  return sub(v[2], record_fence, record_fence_end)
end
