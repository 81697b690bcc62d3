--- @include "state/score"
--- @include "state/values"
--- @include "state/record"
--- @include "state/ask"
--- @include "line/place"
--- @include "line/dead"
--- @include "fast/patrol"
-- What the reply says: the ticket, 1 where the next to be told is the node's own, when (ms), and how many stand ahead.
local wait_first = "%s 1 %d %s"
local wait_behind = "%s 0 %d %s"

-- fast_wait has a new claim join the line by its ticket, where the name is full, no hold has expired
-- and the first in line lives; now and due are what fast_acquire has read. The node has an id of 16 digits.
-- It returns the reply, or nil, and has written nothing, in every other case.
local function fast_wait(now, due, v, top, keys, linger, claim, owned, calm, asked)
  local text, sub, format = v[1], string.sub, string.format
  local call = redis.call
  top = top or call("ZRANGE", keys[2], "0", "0")[1]
  local wait, lane = string.match(asked, ask_waits)
  local rest, count = sub(text, values_calm_end + 1), tonumber(sub(text, values_waiting, values_waiting_end))
  if not wait or not top or not count
    or sub(text, values_waiting_end + 1, values_calm_end) ~= sub(calm, values_calm_cap - 1)
    or sub(owned, record_gap_at, record_gap_at) ~= record_gap then
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
    local first = sub(top, place_claim - 1, place_claim - 1) == place_mark and sub(top, place_claim)
      or select(2, string.match(top, place_member)) or ""
    lives = call("HGET", keys[1], "c:" .. first)
    lives = lives and string.find(lives, record_waiting) and sub(lives, record_from, record_alive_end) or ""
    mine = sub(first, 1, record_gap_at) == sub(claim, 1, record_gap_at)
  end
  if not ticket or lives <= now or not tonumber(due) then
    return nil
  end
  if patrol_due(ticket) then
    rest = fast_patrol(keys, count - values_line, rest, now + 0)
    if not rest then
      return nil
    end
  end
  local exp = sub(text, values_exp, values_due - 2)
  local far, member, head = ends + linger - exp > 0, ticket .. place_mark .. claim, sub(text, 1, values_ticket - 1)
  call("ZADD", keys[2], lane, member)
  if count == values_line + score_crowd then
    call("ZADD", keys[2], score_kept, score_long)
    call("ZREM", keys[2], score_long)
  end
  if count > values_line then
    ahead = call("ZRANK", keys[2], member)
  end
  if not ahead or ahead == 0 then
    ahead, lives, mine = "0", alive, true
  end
  if far then
    exp = format(values_ms, math.min(math.ceil((ends + linger) / 1000) * 1000, values_last))
    head = sub(text, 1, values_exp - 1) .. exp .. values_gap .. due .. values_gap
    call("PEXPIREAT", keys[1], exp)
    call("PEXPIREAT", keys[2], exp)
  end
  call("HSET", keys[1],
    "v", head .. ticket .. sub(text, values_busy - 1, values_waiting - 1) .. format("%d", count + 1)
      .. sub(calm, values_calm_cap - 1) .. rest,
    "c:" .. claim, record_waits .. alive .. record_gap .. format(values_ms, ends - wait / 2 + 0.5) .. record_gap
      .. ticket .. record_gap .. owned)
  if due < lives then
    lives = due
  end
  return format(mine and wait_first or wait_behind, ticket, lives - now, ahead)
end
