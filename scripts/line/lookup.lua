--- @include "state/record"
--- @include "state/touch"
--- @include "line/leave"
-- lookup fetches what the state and the line have of the claims, and takes out those
-- that hold for the state and of which the line has nothing: somebody has deleted it.
local function lookup(at, st, node, calls)
  local fields, members = {}, {}
  for i = 1, #calls, 2 do
    local n, claim = #fields + 1, calls[i]
    fields[n], members[2 * n - 1], members[2 * n] = "c:" .. claim, "h:" .. claim, "a:" .. claim
  end
  local texts = redis.call("HMGET", at.state, unpack(fields))
  local scores = redis.call("ZMSCORE", at.line, unpack(members))
  local extras = kind_extras and kind_extras(at, calls)
  if st.fmt > 0 then
    touch(at, st) -- leases live on on a full server
  end
  for n, text in ipairs(texts) do
    local r = text and not scores[2 * n - 1] and not scores[2 * n] and record_read(text)
    if r and r.node == node and r.phase ~= "w" then
      leave(at, st, calls[2 * n - 1], r)
      if extras then
        extras[n] = ""
      end
    end
  end
  return texts, scores, extras
end
