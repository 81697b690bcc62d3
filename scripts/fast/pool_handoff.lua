--- @include "state/score"
--- @include "state/values"
--- @include "state/record"
--- @include "line/place"
--- @include "wake/wake"
--- @include "pool/wants"
--- @include "pool/item"
--- @include "fast/first"
-- fast_pool_handoff gives what fast_pool_release has looked at (p) from hand to hand, to the first in line, see
-- fast/first: nothing becomes free in between. That one wants any resource for its own, and the next one has
-- nothing to hear of a rest. It returns the reply, or nil, and has written nothing, in every other case.
local function fast_pool_handoff(p, v, keys, channel, name, claim, top, behind)
  local state, line, text, sub = keys[1], keys[2], v[1], string.sub
  local call = redis.call
  local member, first, alive, node, rest, secret, due, half = fast_first(p, text, keys, claim, top, behind)
  local colon = member and string.find(rest, wants_colon, 1, true) or 0
  if not member or sub(rest, colon - 1) ~= wants_bare and not string.find(record_extra(rest), wants_own)
    or half ~= "" and call("ZRANGEBYSCORE", line, score_first_rest, score_before_rest .. half, "LIMIT", "0", "1")[1] then
    return nil
  end
  call("ZREM", line, "h:" .. claim, member)
  call("HDEL", state, "c:" .. claim, "r:" .. claim)
  call("ZADD", line, score_held .. alive, "h:" .. first)
  call("HSET", keys[3], "i" .. p.key, p.item .. first .. item_gap)
  local fence, left = sub(p.head, values_fence_from), string.format("%d", alive - p.now)
  call("HSET", state,
    "v", p.head .. sub(text, values_head + 1, values_due - 1) .. due .. sub(text, values_due_end + 1, values_busy - 1)
      .. p.now .. sub(text, values_busy_end + 1, values_used_end + 1) .. string.format("%d", p.waiting - 1)
      .. sub(text, values_waiting_end + 1),
    "c:" .. first, record_given .. sub(member, 1, place_claim - 2) .. record_gap .. fence .. record_gap
      .. p.now .. record_gap .. record_unlimited .. record_gap .. node .. record_gap .. rest,
    "r:" .. first, p.key,
    "pool", p.counts)
  redis.pcall("PUBLISH", channel .. node, string.format(wake_granted, #name) .. name
    .. string.format(wake_resource, #first, first, fence, #left, left, #p.key) .. p.key
    .. string.format(wake_size, #secret) .. secret)
  return p.reply
end
