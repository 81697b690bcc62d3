--- @include "state/score"
--- @include "state/values"
--- @include "state/record"
--- @include "state/ask"
--- @include "line/place"
--- @include "line/dead"
--- @include "pool/counts"
--- @include "fast/patrol"
-- fast_pool_wait has a new claim join the line of a pool in which nothing is free, by its ticket; now and due are what
-- fast_pool_acquire has read. Nothing may have to be done first: bindings have moments, none of which has passed, and
-- nothing else has one. See fast/wait. It returns the reply, or nil, and has written nothing, in every other case.
local function fast_pool_wait(now, due, v, keys, linger, claim, owned, asked)
  local text, counts, sub, format = v[1], v[3], string.sub, string.format
  local call = redis.call
  local wait, lane = string.match(asked, ask_waits)
  local count, rest = tonumber(sub(text, values_waiting, values_waiting_end)), sub(text, values_calm_end + 1)
  if not wait or not count or sub(owned, record_gap_at, record_gap_at) ~= record_gap then
    return nil
  end
  local moment = call("ZRANGEBYSCORE", keys[2], score_first_op, "+inf", "WITHSCORES", "LIMIT", "0", "1")
  if moment[1] ~= "-" and (sub(moment[1] or "", 1, 2) ~= "u:" or moment[2] <= score_before_bind .. now) then
    return nil
  end
  local ends, ticket, last, ahead = now + wait, now, sub(text, values_ticket, values_ticket_end), false
  local alive, mine = format(values_ms, ends), count == values_line
  local lives = alive
  if now <= last then
    ticket = tonumber(last)
    ticket = ticket and format(values_ms, ticket + 1)
  end
  if not mine then
    local top = call("ZRANGE", keys[2], "0", "0")[1] or ""
    local first = sub(top, place_claim - 1, place_claim - 1) == place_mark and sub(top, place_claim)
      or select(2, string.match(top, place_member)) or ""
    lives = call("HGET", keys[1], "c:" .. first)
    lives = lives and string.find(lives, record_waiting) and sub(lives, record_from, record_alive_end) or ""
    mine = sub(first, 1, record_gap_at) == sub(claim, 1, record_gap_at)
  end
  if not ticket or lives <= now or not tonumber(due) then
    return nil
  end
  if count > values_line and patrol_due(ticket) then
    rest = fast_patrol(keys, count - values_line, rest, now + 0)
    if not rest then
      return nil
    end
  end
  local member, exp = ticket .. place_mark .. claim, sub(text, values_exp, values_due - 2)
  local far = ends + linger - exp > 0
  call("ZADD", keys[2], lane, member)
  if count > values_line then
    ahead = call("ZRANK", keys[2], member)
  end
  if not ahead or ahead == 0 then
    ahead, lives, mine = "0", alive, true
  end
  if far then
    exp = format(values_ms, math.min(math.ceil((ends + linger) / 1000) * 1000, values_last))
  end
  call("HSET", keys[1],
    "v", sub(text, 1, values_exp - 1) .. exp .. values_gap .. due .. values_gap .. ticket .. values_gap .. now
      .. sub(text, values_busy_end + 1, values_used_end + 1) .. format("%d", count + 1)
      .. sub(text, values_waiting_end + 1, values_calm_end) .. rest,
    "c:" .. claim, record_waits .. alive .. record_gap .. format(values_ms, ends - wait / 2 + 0.5) .. record_gap
      .. ticket .. record_gap .. owned)
  if due < lives then
    lives = due
  end
  return format(pool_waits, ticket, mine and 1 or 0, lives - now, ahead,
    sub(counts, 1, pool_counts_resources_end))
end
