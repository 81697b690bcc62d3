--- @include "state/values"
--- @include "state/record"
--- @include "line/place"
--- @include "line/dead"
--- @include "fast/patrol"
-- fast_wait has a new claim join the line by its ticket, where the name is full, no hold has expired
-- and the first in line lives; p is what fast_acquire has read, or fast_pool_acquire: then with counts. It returns
-- the reply, or nil, and has written nothing, in every other case.
local function fast_wait(p, top, keys, linger, node, claim, lane, terms, capacity)
  local text, now, sub, format = p.text, p.now, string.sub, string.format
  local call = redis.call
  top = top or call("ZRANGE", keys[2], "0", "0")[1]
  if not top then
    return nil
  end
  local ticket, ends, rest = now, now + p.wait, sub(text, values_calm_end + 1)
  local mine, alive, ahead = p.waiting == values_line, ends, 0
  local due, last = tonumber(p.due), tonumber(p.last)
  if not due or not last then
    return nil
  elseif now <= p.last then
    ticket = format(values_ms, last + 1)
  end
  if not mine then
    local first = sub(top, place_claim - 1, place_claim - 1) == place_mark and sub(top, place_claim)
      or select(2, string.match(top, place_member)) or ""
    alive = string.match(call("HGET", keys[1], "c:" .. first) or "", record_lives) or 0
    mine, ahead = sub(first, 1, #node + 1) == node .. ".", nil
  end
  if alive - now <= 0 then
    return nil
  end
  if p.waiting ~= values_line and patrol_due(ticket) then
    rest = fast_patrol(keys, p.waiting - values_line, rest, now + 0)
    if not rest then
      return nil
    end
  end
  local exp, busy = sub(text, values_exp, values_due - 2), sub(text, values_busy, values_busy_end)
  local far = ends + linger - exp > 0
  call("ZADD", keys[2], lane, ticket .. place_mark .. claim)
  ahead = ahead or call("ZRANK", keys[2], ticket .. place_mark .. claim)
  if ahead == 0 then
    alive, mine = ends, true
  end
  if p.counts or p.used > values_one then
    busy = now
  end
  if far then
    exp = format(values_ms, math.min(math.ceil((ends + linger) / 1000) * 1000, values_last))
  end
  if far and not p.counts then
    call("PEXPIREAT", keys[1], exp)
    call("PEXPIREAT", keys[2], exp)
  end
  local values = sub(text, 1, values_head) .. values_gap .. exp .. values_gap .. p.due .. values_gap .. ticket
    .. values_gap .. busy .. values_gap .. p.used .. values_gap .. format("%d", p.waiting + 1) .. values_gap .. capacity
    .. values_gap .. (p.counts and values_stay or values_calm) .. rest
  local record = record_waits .. format(values_ms, ends) .. record_gap .. format(values_ms, ends - math.floor(p.wait / 2))
    .. record_gap .. ticket .. record_gap .. node .. record_gap .. terms
  if p.counts then
    call("HSET", keys[1], "v", values, "c:" .. claim, record, "pool", p.counts)
  else
    call("HSET", keys[1], "v", values, "c:" .. claim, record)
  end
  return { "joined", ticket, ahead, math.min(due, alive) - now, (mine and 4 or 0) + (p.counts and 8 or 0),
    p.resources }
end
