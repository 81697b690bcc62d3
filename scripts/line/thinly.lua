--- @include "state/thin"
--- @include "state/fatten"
-- renew_thin answers the own calls of a node's claims where the name is thin, see line/renew. It
-- returns nil, and the name is fat, for a call that the thin form cannot express.
local function renew_thin(at, st, node, calls)
  local reply, hold = { "renewed", -1, 0, st.cap }, st.thin
  for n = 1, #calls, 2 do
    local k = #reply
    reply[k + 1], reply[k + 2], reply[k + 3] = "unknown", 0, 0
    if hold and calls[n] == hold.claim and hold.r.node ~= node then
      reply[k + 1] = "taken"
    elseif hold and calls[n] == hold.claim and hold.r.held > at.ms then
      local r, anew = hold.r, calls[n + 1] == "renew"
      if not anew and string.sub(calls[n + 1], 1, 4) ~= "beat" then
        fatten(at, st, false)
        return nil
      elseif anew or r.kind == "r" then
        redis.call("PEXPIRE", at.state, int(r.lease + at.linger)) -- needs no memory: the rest works on a full server
        r.held = thin_write(at, st.fence, at.ms, hold.claim, r)
      end
      reply[k + 1], reply[k + 2], reply[k + 3] = "held", r.held - at.ms, st.fence
    end
  end
  return reply
end

-- release_thin ends the hold of a node's own claim, see line/release. It returns nil, and the
-- name is fat, where the thin form cannot express what is asked for.
local function release_thin(at, st, claim, node, stays)
  local hold = st.thin
  if hold and hold.claim == claim and hold.r.node ~= node then
    return { "taken" }
  elseif stays > 0 then
    fatten(at, st, false, claim)
    return nil
  elseif not hold or hold.claim ~= claim then
    return { "not_held", "" }
  end
  thin_free(at, st)
  return { hold.r.held > at.ms and "released" or "expired", 0, tonumber(hold.r.fence), kind_part and 0 or nil }
end
