--- @include "state/feature"
--- @include "state/int"
--- @include "state/load"
--- @include "state/record"
-- The thin form of a name is a text in the place of its state, without a line: all that there
-- is while it has one plain hold, or none. Numbers have a fixed width.
--   fence   the last one, 16 digits: when it was given (microseconds)
--   since   of a hold: when it was last renewed (ms, 13 digits)
--   claim   of a hold; its node comes before the last dot
--   tail    of a hold: as in state/record
-- Such a hold has been confirmed, has the weight 1, a lease that ends, no longer than its
-- wait lease, and a tail of at most 512 bytes. An f and a number in front of the text belong to a feature to come.
local thin_idle = "^%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d$"
local thin_held = "^(%d+) (%d+) ((%S+)%.[^%s.]+) (1 .*)$"
local thin_claim = "^(%S+)%.[^%s.]+$"
local thin_newer = "^f(%d+) "

local thin_form = "%016d %013d "
local thin_fence = "%016d"

-- What the scripts of thin names write and compare: between two words, where the claim begins,
-- and behind it: the kind, lease (ms) and maximum hold (ms).
local thin_gap = " "
local thin_millis = 13
local thin_before = 17
local thin_behind = 31
local thin_from = 32
local thin_ms = "%013d"
local thin_terms = "^1 %S+ (%a) %d+ (%d+) (%d+) "

-- thin_read makes a state of the text of a thin name, as load does of values: a hold that lives is
-- counted, one whose deadline has passed is not. It returns nil for a text that is not
-- Berth's. The field thin of the state, nil for an idle name, has
--   claim, text, r   the claim, its record as text and as it is read; r.held is its deadline (ms)
local function thin_read(text, ms)
  local st = load(false)
  local number = tonumber(string.match(text, thin_newer) or nil)
  if number then
    return st, number
  end
  local fence, since, claim, node, tail = string.match(text, thin_held)
  if claim and (#fence ~= 16 or #since ~= 13 or not string.match(tail, record_asks))
    or not claim and not string.find(text, thin_idle) then
    return nil
  end
  local granted = string.sub(text, 1, thin_millis)
  st.fmt, st.form, st.cap, st.was_cap = feature_first, "thin", 1, 1
  st.fence = tonumber(string.sub(text, 1, thin_before - 1))
  if claim then
    local r = record_new(node, tail)
    r.phase, r.ticket, r.fence, r.granted = "h", granted, int(st.fence), granted
    r = record_read(record_write(r))
    r.limit = r.max > 0 and granted + r.max or 0
    r.held = tonumber(since) + r.lease
    if r.limit > 0 then
      r.held = math.min(r.held, r.limit)
    end
    st.thin = { claim = claim, text = record_write(r), r = r }
    if r.held > ms then
      st.used, st.due = 1, r.held
    end
  end
  return st
end

-- thin_fits says whether a grant of this run can be written in thin form.
local function thin_fits(at, st, claim, r)
  return st.form ~= "fat" and st.cap == 1 and r.weight == 1 and st.fence < at.us
    and r.lease > 0 and r.lease <= math.min(r.wait, at.linger) and #r.tail <= 512
    and string.match(claim, thin_claim) == r.node
end

-- thin_write writes a name that is held: the fence of its hold, and when that was renewed last
-- (ms). It returns the deadline (ms).
local function thin_write(at, fence, since, claim, r)
  local ends = since + r.lease
  if r.limit > 0 then
    ends = math.min(ends, r.limit)
  end
  redis.call("SET", at.state, string.format(thin_form, fence, since) .. claim .. " " .. r.tail,
    "PX", int(since - at.ms + r.lease + at.linger))
  return ends
end

-- thin_grant grants to a claim.
local function thin_grant(at, st, claim, r)
  if at.head then -- left over from a state that was evicted
    redis.call("UNLINK", at.line)
  end
  st.fence = at.us
  r.phase, r.fence, r.granted, r.limit = "h", int(st.fence), at.ms, r.max > 0 and at.ms + r.max or 0
  return thin_write(at, st.fence, at.ms, claim, r)
end

-- thin_free writes a name that is idle. On a full server it needs no memory before.
local function thin_free(at, st)
  redis.call("PEXPIRE", at.state, int(at.linger))
  redis.call("SET", at.state, string.format(thin_fence, st.fence), "PX", int(at.linger))
end
