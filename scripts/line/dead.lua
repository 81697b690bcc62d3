--- @include "state/record"
--- @include "line/place"
-- find_dead returns the claims that have died from one rank of the line up to before another, each
-- with its place: claim, place, ...; and how many places it has seen
local function find_dead(state, line, from, to, ms)
  local members, fields, dead, seen = redis.call("ZRANGE", line, from, to - 1), { "c:" }, {}, 0
  for i, member in ipairs(members) do
    fields[i] = "c:" .. (select(2, string.match(member, place_member)) or "")
  end
  for i, text in ipairs(redis.call("HMGET", state, unpack(fields))) do
    local alive = string.match(text or "", record_lives)
    local place, claim = string.match(members[i] or "", place_member)
    seen = claim and seen + 1 or seen
    if claim and not (alive and alive - ms > 0) then
      dead[#dead + 1], dead[#dead + 2] = claim, place
    end
  end
  return dead, seen
end

-- patrol_due says whether an arrival with a ticket looks: each sixteenth does, at eight places.
local function patrol_due(ticket)
  return ticket % 16 == 0
end
