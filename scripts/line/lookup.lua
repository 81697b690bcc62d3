--- @include "state/score"
--- @include "state/record"
--- @include "state/touch"
--- @include "line/leave"
--- @include "line/place"
-- lookup fetches what the state and the line have of the claims: the records, and of each
-- the deadline of its hold (ms) or its rank in the line, false where it has none. It takes out
-- claims that hold by the state and not by the line: somebody has deleted the line.
local function lookup(at, st, node, calls)
  local fields, members = {}, {}
  for i = 1, #calls, 2 do
    fields[#fields + 1], members[#members + 1] = "c:" .. calls[i], "h:" .. calls[i]
  end
  local texts, held, ranks = redis.call("HMGET", at.state, unpack(fields)), {}, {}
  local scores = redis.call("ZMSCORE", at.line, unpack(members))
  local extras = kind_extras and kind_extras(at, calls)
  if st.form then
    touch(at, st) -- leases live on on a full server
  end
  for n, text in ipairs(texts) do
    local claim, r = calls[2 * n - 1], text and record_read(text)
    texts[n], held[n] = r or text, scores[n] and tonumber(scores[n]) - score_hold
    if r and r.phase == "w" then
      ranks[n] = redis.call("ZRANK", at.line, r.place .. place_mark .. claim)
    elseif r and r.node == node and not held[n] then
      leave(at, st, claim, r)
      if extras then
        extras[n] = ""
      end
    end
  end
  return texts, held, ranks, extras
end
