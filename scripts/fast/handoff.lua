--- @include "state/score"
--- @include "state/values"
--- @include "state/record"
--- @include "line/place"
--- @include "wake/wake"
--- @include "fast/first"
-- fast_handoff takes a hold back that fast_release has looked at (p), and grants to the first in
-- line, see fast/first, if the name is full with it. It returns the reply, or nil, and has written nothing, in
-- every other case.
local function fast_handoff(p, v, keys, channel, name, claim, top, behind)
  local state, line, text, sub = keys[1], keys[2], v[1], string.sub
  local call = redis.call
  p.most = sub(text, values_cap, values_cap_end) - values_base
  local member, first, alive, node, rest, secret, due = fast_first(p, text, keys, claim, top, behind)
  if not member then
    return nil
  end
  call("ZREM", line, "h:" .. claim, member)
  call("HDEL", state, "c:" .. claim)
  call("ZADD", line, score_held .. alive, "h:" .. first)
  local fence, left = sub(p.head, values_fence_from), string.format("%d", alive - p.now)
  call("HSET", state,
    "v", p.head .. sub(text, values_head + 1, values_due - 1) .. due .. sub(text, values_due_end + 1, values_busy - 1)
      .. p.now .. values_gap .. sub(text, values_cap, values_cap_end) .. values_gap .. string.format("%d", p.waiting - 1)
      .. sub(text, values_waiting_end + 1),
    "c:" .. first, record_given .. sub(member, 1, place_claim - 2) .. record_gap .. fence .. record_gap
      .. p.now .. record_gap .. record_unlimited .. record_gap .. node .. record_gap .. rest)
  redis.pcall("PUBLISH", channel .. node, string.format(wake_granted, #name) .. name
    .. string.format(wake_size, #first) .. first .. wake_fence .. fence
    .. string.format(wake_size, #left) .. left .. wake_nothing .. string.format(wake_size, #secret) .. secret)
  return p.reply
end
