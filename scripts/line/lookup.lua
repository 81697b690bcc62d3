--- @include "state/score"
--- @include "state/record"
--- @include "state/touch"
--- @include "line/leave"
--- @include "line/place"
-- lookup fetches what the state and the line have of the claims: the records, and of each
-- the deadline of its hold (ms), or whether its place is in the line. It takes out
-- claims that hold by the state and not by the line: somebody has deleted the line.
local function lookup(at, st, node, calls)
  local fields, members = {}, {}
  for i = 1, #calls, 2 do
    fields[#fields + 1] = "c:" .. calls[i]
  end
  local texts, held, stands = redis.call("HMGET", at.state, unpack(fields)), {}, {}
  for n, text in ipairs(texts) do
    local claim, r = calls[2 * n - 1], text and record_read(text)
    texts[n] = r or text
    members[n] = r and r.phase == "w" and r.place .. place_mark .. claim or "h:" .. claim
  end
  local scores = redis.call("ZMSCORE", at.line, unpack(members))
  local extras = kind_extras and kind_extras(at, calls)
  if st.form then
    touch(at, st) -- leases live on on a full server
  end
  for n, r in ipairs(texts) do
    if type(r) == "table" and r.phase == "w" then
      stands[n] = scores[n]
    else
      held[n] = scores[n] and tonumber(scores[n]) - score_hold
    end
    if type(r) == "table" and r.phase ~= "w" and r.node == node and not held[n] then
      leave(at, st, calls[2 * n - 1], r)
      if extras then
        extras[n] = ""
      end
    end
  end
  return texts, held, stands, extras
end
