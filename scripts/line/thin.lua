--- @include "state/int"
--- @include "state/thin"
--- @include "state/fatten"
-- thin_fits says whether a grant of this run can be written in thin form.
local function thin_fits(at, st, claim, r)
  return st.form ~= "fat" and st.cap == 1 and r.weight == 1 and st.fence < at.us
    and r.lease > 0 and r.lease <= math.min(r.wait, at.linger) and #r.terms <= 512
    and string.match(claim, thin_claim) == r.node
end

-- thin_write writes a name that is held: the fence of its hold, and when that was renewed last
-- (ms). It returns the deadline (ms).
local function thin_write(at, fence, since, claim, r)
  local ends = since + r.lease
  if r.limit > 0 then
    ends = math.min(ends, r.limit)
  end
  redis.call("SET", at.state, thin_text(fence, since, claim, r.terms),
    "PX", int(since - at.ms + r.lease + at.linger))
  return ends
end

-- thin_grant grants to a claim.
local function thin_grant(at, st, claim, r)
  if at.head then -- left over from a state that was evicted
    redis.call("UNLINK", at.line)
  end
  st.fence = at.us
  r.phase = "h"
  r.limit = r.max > 0 and at.ms + r.max or 0
  return thin_write(at, st.fence, at.ms, claim, r)
end

-- thin_free writes a name that is idle. On a full server it needs no memory before.
local function thin_free(at, st)
  redis.call("PEXPIRE", at.state, int(at.linger))
  redis.call("SET", at.state, string.format(thin_fence, st.fence), "PX", int(at.linger))
end

-- renew_thin answers the own calls of a node's claims where the name is thin, see line/renew. It
-- returns nil, and the name is fat, for a call that the thin form cannot express.
local function renew_thin(at, st, node, calls)
  local reply, hold = { "renewed", -1, 0, st.cap }, st.thin
  for n = 1, #calls, 2 do
    local k = #reply
    reply[k + 1], reply[k + 2], reply[k + 3] = "unknown", 0, 0
    if hold and calls[n] == hold.claim and hold.node ~= node then
      reply[k + 1] = "taken"
    elseif hold and calls[n] == hold.claim and hold.held > at.ms then
      local r, anew = thin_record(st).r, calls[n + 1] == "renew"
      if not anew and string.sub(calls[n + 1], 1, 4) ~= "beat" then
        fatten(at, st, false)
        return nil
      elseif anew or r.kind == "r" then
        redis.call("PEXPIRE", at.state, int(r.lease + at.linger)) -- needs no memory: the rest works on a full server
        hold.held = thin_write(at, st.fence, at.ms, hold.claim, r)
      end
      reply[k + 1], reply[k + 2], reply[k + 3] = "held", hold.held - at.ms, st.fence
    end
  end
  return reply
end

-- release_thin ends the hold of a node's own claim, see line/release. It returns nil, and the
-- name is fat, where the thin form cannot express what is asked for.
local function release_thin(at, st, claim, node, stays)
  local hold = st.thin
  if hold and hold.claim == claim and hold.node ~= node then
    return { "taken" }
  elseif stays > 0 then
    fatten(at, st, false, claim)
    return nil
  elseif not hold or hold.claim ~= claim then
    return { "not_held", "" }
  end
  thin_free(at, st)
  return { hold.held > at.ms and "released" or "expired", 0, st.fence, kind_remove and 0 or nil }
end
