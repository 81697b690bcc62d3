--- @include "lib/bands"
--- @include "lib/record"
--- @include "lib/pack"
--- @include "lib/lengthen"
--- @include "lib/leave"
--- @include "lib/touch"
-- beats answers the own calls of a node's claims: pairs of claim id and mode from
-- args[from] on. It writes the new deadlines, appends to the reply a word, the
-- milliseconds left (-1 = no end) and the fence of each, and what more(n, claim)
-- returns where that is given. A hold of which the line has nothing is taken out by
-- drop(n, claim, record), or by leave. It returns the furthest deadline of these claims,
-- moved or not, the fields that save has to write, and the earliest deadline that has come
-- nearer.
--   held       it holds
--   waiting    it waits in line
--   unknown    nothing is known of it, or its deadline has passed
--   taken      another node has resumed it
--   too_heavy  it waited and weighs more than the capacity: removed; in place of the
--              time left and the fence, how much is held and how many wait
--   gone, released    what a tombstone says
local function beats(at, st, node, args, from, reply, more, drop)
  local band = bands()
  local fields, members = {}, {}
  for i = from, #args, 2 do
    fields[#fields + 1] = "c:" .. args[i]
    members[#members + 1], members[#members + 2] = "h:" .. args[i], "a:" .. args[i]
  end
  local records = redis.call("HMGET", at.state, unpack(fields))
  local scores = redis.call("ZMSCORE", at.line, unpack(members))
  local scored, changed, furthest, sooner = {}, {}, nil, nil

  -- renew answers for one claim.
  local function renew(claim, mode, text, held, alive)
    local r = text and record(text)
    if not r then
      return text and string.sub(text, 2) or "unknown", 0, 0
    elseif r.node ~= node then
      return "taken", 0, 0
    elseif held and held > at.ms then
      local phase = r.phase
      local deadline = lengthen(at, st, r, held, mode)
      if r.phase ~= phase then
        changed[#changed + 1], changed[#changed + 2] = "c:" .. claim, pack(r)
      end
      if deadline ~= held then
        scored[#scored + 1], scored[#scored + 2] = deadline, "h:" .. claim
      end
      if deadline < band.forever then
        furthest = math.max(furthest or 0, deadline) -- moved or not: the linger may be another one
      end
      if deadline < held then
        sooner = math.min(sooner or deadline, deadline)
      end
      return "held", deadline == band.forever and -1 or deadline - at.ms, tonumber(r.fence)
    elseif alive and alive - band.alive > at.ms then
      if r.weight > st.cap then
        leave(at, st, claim, r, false)
        return "too_heavy", st.used, st.waiting
      end
      scored[#scored + 1], scored[#scored + 2] = band.alive + at.ms + r.wait, "a:" .. claim
      furthest = math.max(furthest or 0, at.ms + r.wait)
      return "waiting", r.wait, 0
    end
    return "unknown", 0, 0
  end

  if st.fmt > 0 then
    touch(at, st) -- leases live on on a full server
  end
  -- First, so that what is counted anew is what is stored.
  for n, text in ipairs(records) do
    local r = text and not scores[2 * n - 1] and not scores[2 * n] and record(text)
    if r and r.node == node and r.phase ~= "w" then
      if drop then
        drop(n, args[from + 2 * (n - 1)], r)
      else
        leave(at, st, args[from + 2 * (n - 1)], r, false)
      end
    end
  end
  for n, text in ipairs(records) do
    local i = from + 2 * (n - 1)
    local word, left, fence = renew(args[i], args[i + 1], text, tonumber(scores[2 * n - 1]), tonumber(scores[2 * n]))
    reply[#reply + 1], reply[#reply + 2], reply[#reply + 3] = word, left, fence
    if more then
      reply[#reply + 1] = more(n, args[i])
    end
  end
  if #scored > 0 then
    redis.call("ZADD", at.line, unpack(scored))
  end
  return furthest, changed, sooner
end
