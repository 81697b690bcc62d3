--- @include "state/score"
--- @include "state/values"
--- @include "state/record"
--- @include "line/place"
--- @include "wake/wake"
--- @include "pool/wants"
--- @include "pool/item"
--- @include "state/ask"
--- @include "fast/first"
-- fast_pool_handoff gives what fast_pool_release has looked at (p) from hand to hand, to the first in line, see
-- fast/first: nothing becomes free in between. That one wants any resource for its own, and the next one has
-- nothing to hear of a rest. It returns the reply, or nil, and has written nothing, in every other case.
local function fast_pool_handoff(p, v, keys, claim, asked)
  local state, line, text, sub = keys[1], keys[2], v[1], string.sub
  local call = redis.call
  local member, first, alive, record, due, half = fast_first(p, text, keys, claim)
  local colon = member and string.find(record, wants_colon, record_proof, true) or 0
  if not member
    or sub(record, colon - 1) ~= wants_bare and not string.find(record_extra(sub(record, record_proof)), wants_own)
    or half ~= "" and call("ZRANGEBYSCORE", line, score_first_rest, score_before_rest .. half, "LIMIT", "0", "1")[1] then
    return nil
  end
  call("ZREM", line, "h:" .. claim, member)
  call("HDEL", state, "c:" .. claim, "r:" .. claim)
  call("ZADD", line, score_held .. alive, "h:" .. first)
  call("HSET", keys[3], "i" .. p.key, p.item .. first .. item_gap)
  local fence = string.format(values_fence, sub(p.head, values_fence_from) + 1) -- the general way gives a turn first
  call("HSET", state,
    "v", values_known .. fence .. sub(text, values_head + 1, values_due - 1) .. due
      .. sub(text, values_due_end + 1, values_busy - 1) .. p.now .. sub(text, values_busy_end + 1, values_used_end + 1)
      .. string.format("%d", p.waiting - 1) .. sub(text, values_waiting_end + 1),
    "c:" .. first, record_given .. sub(member, 1, place_claim - 2) .. record_gap .. fence .. record_gap
      .. p.now .. record_no_limit .. sub(record, record_node),
    "r:" .. first, p.key)
  local channel, name = string.match(asked, ask_told)
  redis.pcall("PUBLISH", channel .. sub(record, record_node, record_node_end), wake_granted .. name
    .. string.format(wake_resource, #first, first, fence, alive - p.now, #p.key) .. p.key
    .. wake_proof .. sub(record, record_proof, record_proof_end))
  return p.reply
end
