--- @include "state/int"
--- @include "line/place"
-- place_between is a place between two that stand next to each other: a whole ticket, or as few
-- digits of a fraction as there have to be.
local function place_between(left, right)
  if left >= right or #left > 100 or #right > 100 then
    return left -- beside it, in the order of the ids
  end
  local from, to = tonumber(string.sub(left, 1, place_whole)), tonumber(string.sub(right, 1, place_whole))
  if to - from > 1 then
    return string.format(place_ticket, from + math.floor((to - from) / 2))
  end
  local low, high, digits = string.sub(left, place_whole + 1), to == from and string.sub(right, place_whole + 1), {}
  for n = 1, #low + #(high or "") + 1 do
    local a = tonumber(string.sub(low, n, n)) or 0
    local b = high and (tonumber(string.sub(high, n, n)) or 0) or 10
    if b - a > 1 then
      digits[n] = math.floor((a + b) / 2)
      break
    end
    digits[n], high = a, a == b and high or false
  end
  return string.sub(left, 1, place_whole) .. table.concat(digits)
end

-- place_access changes where a claim stands, its lane and its place, by its access. Queued: by
-- the ticket. Random: at any rank among the claims of its priority, both ends included, all equally
-- likely; the draw (0 up to 2^32) comes with the call, so that a replay is equal. LIFO: behind the
-- others of its priority, the latest first.
local function place_access(at, ask)
  local lane = ask.lane
  if ask.access == "lifo" then
    ask.lane, ask.place = lane + 1, string.format(place_ticket, 9999999999999 - ask.place)
  end
  local others = ask.access == "random" and redis.call("ZCOUNT", at.line, lane, lane) or 0
  local rank = math.floor(ask.draw / 4294967296 * (others + 1))
  if rank >= others then
    return
  end
  local from = redis.call("ZCOUNT", at.line, "0", "(" .. lane) + rank
  local members = redis.call("ZRANGE", at.line, int(math.max(from - 1, 0)), int(from))
  local right = string.match(members[#members], place_member)
  if rank == 0 then
    ask.place = string.format(place_ticket, string.sub(right, 1, place_whole) - 1) .. "5"
  else
    ask.place = place_between(string.match(members[1], place_member), right)
  end
end
