--- @include "state/score"
--- @include "state/values"
--- @include "state/record"
--- @include "line/place"
--- @include "line/dead"
-- fast_patrol looks as patrol does. It returns the values from look on, or nil where it has found a
-- dead claim.
local function fast_patrol(keys, waiting, rest, ms)
  local look, others = string.match(rest, values_look)
  local to = look ~= "0" and math.min(look, waiting) or waiting
  local from = math.max(to - 8, 0)
  if find_dead(keys[1], keys[2], from, to, ms)[1] then
    return nil
  end
  return values_gap .. string.format("%d", from) .. others
end

-- fast_acquire answers a new claim in the plain cases of a fat name. It grants at once where
-- nobody waits and the claim fits. It has a claim that may queue by its ticket (queues) join the
-- line where the name is full, no hold has expired and the first in line lives. That is what the
-- general way does, in the fewest steps, on the texts as they are read: to reckon or to format
-- costs more than a command. A test compares the two. It returns the reply, or nil, and
-- has written nothing, in every other case. What a call gives is text.
local function fast_acquire(t, v, top, keys, linger, node, claim, lane, terms, capacity, queues)
  local text = v[1] or ""
  local cap, used, waiting, kept, rest = string.match(text, values_behind, values_words)
  if not top or cap ~= capacity or kept ~= values_calm or v[2] or string.sub(text, 1, 2) ~= values_known then
    return nil
  end
  local weight, wait, lease, max = string.match(terms, record_asks)
  local fence, due = values_us(t), string.sub(text, values_due, values_due + 12)
  local now, last = string.sub(fence, 1, values_millis), string.sub(text, values_ticket, values_ticket + 12)
  if due <= now and due ~= values_none then
    return nil
  end
  local limit, ends, values, record, reply = "0"
  if waiting == "0" and used + weight <= cap + 0 then
    local after, busy = used + weight, string.sub(text, values_busy, values_busy + 12)
    if now <= last or fence <= string.sub(text, values_former, values_head - 1) then
      return nil
    end
    local phase, sure = record_holds, 1
    if lease == "0" or lease - wait > 0 then -- what is more than the wait lease is still to be confirmed
      phase, sure, busy, ends = record_given, 0, now, now + wait
    else
      ends = now + lease
      limit = max ~= "0" and string.format("%d", now + max) or "0"
      ends = limit ~= "0" and math.min(ends, limit) or ends
    end
    redis.call("ZADD", keys[2], string.format("%d", score_hold + ends), "h:" .. claim)
    due = due ~= values_none and due - ends <= 0 and due or string.format(values_ms, ends)
    values = due .. values_gap .. last .. values_gap .. (after > 1 and now or busy) .. values_gap .. cap .. values_gap
      .. string.format("%d", after) .. values_gap .. waiting
    text = values_known .. fence .. string.sub(text, values_head)
    record = phase .. node .. record_gap .. now .. record_gap .. string.format("%d", fence + 0) .. record_gap .. now
    reply = { "granted", now, fence, ends - now, sure, cap }
  else
    local alive, mine, ticket = now + wait, waiting == "0", now
    if ticket <= last then
      ticket = string.format(values_ms, last + 1)
    end
    if not mine then
      local first = select(2, string.match(top, place_member))
      local whose, heard, lives = string.match(first and redis.call("HGET", keys[1], "c:" .. first) or "", record_lives)
      alive, mine = heard and heard + lives or 0, whose == node
    end
    if not queues or used - cap < 0 or weight - cap > 0 or alive - now <= 0 then
      return nil
    end
    if patrol_due(ticket) then
      rest = fast_patrol(keys, waiting + 0, rest, now + 0)
      if not rest then
        return nil
      end
    end
    ends = now + wait
    redis.call("ZADD", keys[2], lane, ticket .. place_mark .. claim)
    values = due .. values_gap .. ticket .. values_gap
      .. (used - 1 > 0 and now or string.sub(text, values_busy, values_busy + 12)) .. values_gap .. cap .. values_gap
      .. used .. values_gap .. string.format("%d", waiting + 1)
    record = record_waits .. node .. record_gap .. ticket .. record_gap .. ticket .. record_gap .. now
    local ahead = redis.call("ZRANK", keys[2], ticket .. place_mark .. claim)
    alive = ahead == 0 and now + wait or alive
    reply = { "queued", ticket, 0, wait, (mine or ahead == 0) and 4 or 0, cap, "", lane .. place_behind .. ticket,
      ahead, (due ~= values_none and due - alive < 0 and due or alive) - now }
  end
  local exp = string.sub(text, values_exp, values_exp + 12)
  if ends + linger - exp > 0 then
    exp = string.format(values_ms, math.min(math.ceil((ends + linger) / 1000) * 1000, values_last))
    redis.call("PEXPIREAT", keys[1], exp)
    redis.call("PEXPIREAT", keys[2], exp)
  end
  redis.call("HSET", keys[1],
    "v", string.sub(text, 1, values_head) .. exp .. values_gap .. values .. values_gap .. kept .. rest,
    "c:" .. claim, record .. record_gap .. limit .. record_gap .. terms)
  return reply
end
