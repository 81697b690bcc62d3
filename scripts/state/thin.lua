--- @include "state/feature"
--- @include "state/load"
--- @include "state/record"
-- The thin form of a name is a text in the place of its state, without a line: all that there
-- is while it has one plain hold, or none. Numbers have a fixed width.
--   fence   the last one, 16 digits: when it was given (microseconds)
--   since   of a hold: when it was last renewed (ms, 13 digits)
--   claim   of a hold; its node comes before the last dot
--   terms   of a hold: its fixed terms, as in state/record
-- Such a hold has been confirmed, has the weight 1, a lease that ends, no longer than its
-- wait lease, and fixed terms of at most 512 bytes. An f and a number in front of the text belong to
-- a feature to come.
local thin_idle = "^%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d$"
local thin_held = "^(%d+) (%d+) ((%S+)%.[^%s.]+) (%S+ 1 .*)$"
local thin_claim = "^(%S+)%.[^%s.]+$"
local thin_newer = "^f(%d+) "
local thin_former = "^%d+ %d+ %S+ 1 %S+ %a %d+ " -- as it was before v0.1.0: number 2

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
local thin_terms = "^ %S+ 1 (%a) %d+ (%d+) (%d+) "

-- thin_read makes a state of the text of a thin name, as load does of values: a hold that lives is
-- counted, one whose deadline has passed is not. It returns nil for a text that is not
-- Berth's. The field thin of the state, nil for an idle name, has
--   claim, node, granted (ms), terms   as the text has them
--   held (ms)   its deadline
--   limit (ms)  the end of its maximum hold, 0 = none
--   r, text     once thin_record has made them: its record, as it is read and as text
local function thin_read(text, ms)
  local st = load(false)
  local number = string.match(text, thin_newer)
  if number then
    return st, tonumber(number)
  end
  local fence, since, claim, node, terms = string.match(text, thin_held)
  local weight, _, lease, max = string.match(terms or "", record_asks)
  if not claim and string.find(text, thin_former) then
    return st, 2
  end
  if claim and (#fence ~= 16 or #since ~= 13 or not weight) or not claim and not string.find(text, thin_idle) then
    return nil
  end
  st.fmt, st.form, st.cap, st.was_cap = feature_first, "thin", 1, 1
  st.fence = string.sub(text, 1, thin_before - 1) + 0
  if claim then
    local granted, held, limit = string.sub(text, 1, thin_millis), since + lease, 0
    if max ~= "0" then
      limit = granted + max
      held = math.min(held, limit)
    end
    st.thin = { claim = claim, node = node, granted = granted, terms = terms, held = held, limit = limit }
    if held > ms then
      st.used, st.due = 1, held
    end
  end
  return st
end

-- thin_open is thin_read of a Redis key. Where the key is of another type, the server says so.
local function thin_open(state, text, ms)
  local st, newer = thin_read(text, ms)
  if not st then
    redis.call("HLEN", state)
  end
  return st, newer
end

-- thin_record is the hold of a thin name with its record.
local function thin_record(st)
  local hold = st.thin
  if not hold.r then
    hold.text = string.format(record_plain, hold.granted, st.fence, hold.granted, hold.limit) .. hold.node .. " "
      .. hold.terms
    hold.r = record_read(hold.text)
    hold.r.held = hold.held
  end
  return hold
end

-- thin_text is the text of a thin name that is held.
local function thin_text(fence, since, claim, terms)
  return string.format(thin_form, fence, since) .. claim .. thin_gap .. terms
end
