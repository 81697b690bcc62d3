--- @include "state/record"
--- @include "line/place"
-- find_dead returns the claims that have died from one rank of the line up to before another, each
-- with its place: claim, place, ...; and how many places it has seen
local function find_dead(state, line, from, to, ms)
  local fields, places, dead = {}, {}, {}
  for _, member in ipairs(redis.call("ZRANGE", line, from, to - 1)) do
    local place, claim = string.match(member, place_member)
    if claim then
      fields[#fields + 1], places[#places + 1] = "c:" .. claim, place
    end
  end
  for i, text in ipairs(fields[1] and redis.call("HMGET", state, unpack(fields)) or fields) do
    local alive = string.match(text or "", record_lives)
    if not alive or alive - ms <= 0 then
      dead[#dead + 1], dead[#dead + 2] = string.sub(fields[i], 3), places[i]
    end
  end
  return dead, #places
end

-- patrol_due says whether an arrival with a ticket looks: each sixteenth does, at eight places.
local function patrol_due(ticket)
  return ticket % 16 == 0
end
