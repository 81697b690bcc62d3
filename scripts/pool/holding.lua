--- @include "pool/wants"
--- @include "pool/release"
--- @include "pool/take"
-- The field r:<claim> of a pool's state is the resource that a claim holds.

-- holding_of reads it, nil for none.
local function holding_of(at, st, claim)
  if claim == st.claim then
    return st.extra ~= "" and st.extra or nil
  end
  return redis.call("HGET", at.state, "r:" .. claim) or nil
end

-- holding_all reads what each of many claims holds, "" for nothing: claim, mode, ...
local function holding_all(at, calls)
  local fields = {}
  for i = 1, #calls, 2 do
    fields[#fields + 1] = "r:" .. calls[i]
  end
  local resources = redis.call("HMGET", at.state, unpack(fields))
  for n, resource in ipairs(resources) do
    resources[n] = resource or ""
  end
  return resources
end

-- holding_begin gives a claim what pick has chosen, and returns the resource and the field
-- that the caller has to write.
local function holding_begin(at, st, claim, chosen)
  take(at, st, claim, chosen)
  return chosen.key, "r:" .. claim
end

-- holding_end has what a claim held go back. A cooldown counts from the end of the hold.
-- wish has the fence that the holder knows, and the rest (ms), reason and expiry (ms) that it asks for.
-- They count only while the hold lasts, and if the fence is that of its grant. It returns whether
-- the resource is still in the pool (1, 0), and as a third value the end of the rest that it begins
-- (ms), nil for none.
local function holding_end(at, st, claim, r, deadline, wish)
  local key = holding_of(at, st, claim)
  if not key then
    return 1
  end
  local heard = wish and deadline and deadline > at.ms and tonumber(r.fence) == tonumber(wish.fence)
  local rest = heard and wish.rest or 0
  local from, reason = math.min(at.ms, deadline or at.ms), rest > 0 and wish.reason or ""
  local stays, rests = release_resource(at, st, claim, key, wants_back(r.terms), from, rest, reason,
    heard and wish.expiry or 0)
  return stays and 1 or 0, nil, rests
end

-- holding_expire has the resource of a hold that has expired go back; terms is false where the hold's
-- record is gone. It returns the end of the rest that it begins (ms), nil for none.
local function holding_expire(at, st, claim, terms, deadline)
  local key = redis.call("HGET", at.state, "r:" .. claim)
  if not key then
    return nil
  end
  local _, rests = release_resource(at, st, claim, key, terms and wants_back(terms) or nil, deadline, 0, "", 0)
  return rests
end
