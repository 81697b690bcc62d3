--- @include "state/score"
--- @include "state/int"
--- @include "state/record"
--- @include "line/first"
--- @include "wake/wake"
-- wanted_order puts holds in the order in which they are asked for: the oldest first, and behind all
-- others those that no process has, for nobody hears of them.
local function wanted_order(a, b)
  if (a.r.phase == "d") ~= (b.r.phase == "d") then
    return b.r.phase == "d"
  end
  return tonumber(a.r.fence) < tonumber(b.r.fence)
end

-- wanted_holders asks for holds on behalf of a claim that waits: as many of those claims as it needs by
-- their weights, with the ones that are wanted already.
local function wanted_holders(at, claims, needs)
  local fields, holds = {}, {}
  for i, claim in ipairs(claims) do
    fields[i] = "c:" .. claim
  end
  for i, text in ipairs(fields[1] and redis.call("HMGET", at.state, unpack(fields)) or {}) do
    local r = text and record_read(text)
    if r and r.wanted == "" then
      holds[#holds + 1] = { claim = claims[i], r = r }
    elseif r and r.phase ~= "d" then
      needs = needs - r.weight
    end
  end
  table.sort(holds, wanted_order)
  for _, h in ipairs(holds) do
    if needs <= 0 then
      return
    end
    needs = needs - h.r.weight
    record_want(h.r, at.ms)
    redis.call("HSET", at.state, "c:" .. h.claim, record_write(h.r))
    wake(at, h.r.node, "wanted", at.name, h.claim)
  end
end

-- wanted_by asks on behalf of those of a call's waiting claims that want that and stand first, and has the
-- reply say so. While the name is paused nobody asks: what is given back helps nobody. It looks at as many
-- holds in all as the call has left of its drops and grants; of a line at those whose deadlines come first. It
-- comes behind save, which writes records of the call.
local function wanted_by(at, st, waits, reply, left)
  left = st.pause == 0 and left or 0
  for _, c in ipairs(waits) do
    local claims, needs
    if c.asks and left > 0 and kind_asks then
      claims, needs = kind_asks(at, c.claim, c.r)
    end
    if c.asks and left > 0 and not claims and first(at.line) == c.claim then
      claims, needs = {}, needs or c.r.weight - st.cap + st.used
      local members = redis.call("ZRANGEBYSCORE", at.line, "(" .. int(score_hold + at.ms),
        int(score_hold + score_forever), "LIMIT", "0", left)
      for i, member in ipairs(members) do
        claims[i] = string.sub(member, 3)
      end
    end
    if claims then
      wanted_holders(at, { unpack(claims, 1, math.min(#claims, left)) }, needs)
      left, reply[c.at] = left - #claims, "asked"
    end
  end
end
