--- @include "state/open"
--- @include "owner/live"
--- @include "owner/deadline"
--- @include "owner/remove"
--- @include "owner/renewal"
--- @include "owner/reenter"
--- @include "owner/place"
--- @include "owner/reentered"
--- @include "owner/remaining"
-- What only locks are: one owner holds, with one entry or several, which share a deadline.
-- See scripts.go for what the line asks of a kind. What a kind does not define is false.
local kind_spare = 0
local kind_weighs = true
local kind_thin = true

-- kind_open: the text of the group is the last of what was fetched.
local function kind_open(keys, linger, channel, name, claim, t, v, top)
  local at, st, known = open(keys, linger, channel, name, claim, t, v, top)
  st.group_text = v[3]
  return at, st, known
end

-- kind_refuse: nothing is refused before; a lock is a line of capacity 1.
local function kind_refuse(_, st)
  st.cap = 1
end

-- kind_full: what has expired may be in the way.
local function kind_full(_, st)
  return st.waiting > 0 or st.used > 0
end

--- @include "state/fatten"
-- kind_enter: an owner was given. A claim that holds already, as an entry that is not the
-- outermost one, is told what it has. Where the owner holds the lock, a claim enters once
-- more by its conflict, waits, or is refused.
local function kind_enter(at, st, ask, holds, swept, more)
  local s = st.used > 0 and live_group(at, st)
  local e = holds and find_entry(s, ask.claim)
  if holds then
    return e and e.kind ~= "o" and reentered(at, s, e, false) or nil
  end
  local outer = s and record_owner(s.entries[1].claim, s.entries[1].r) == ask.owner and s.entries[1].r
  if not outer then
    return nil
  elseif ask.conflict == "work" or ask.conflict == "extend" then
    if #s.entries >= 100 then
      return { "crowded", st.used, st.waiting, swept, more and 2 or 0 }
    end
    fatten(at, st, true)
    local entry, m = reenter(at, st, s, ask.claim, ask.r, ask.conflict == "extend")
    return reentered(at, s, entry, more), m.fields, m.furthest
  end
  local stays = outer.max == 0 and (outer.lease == 0 or outer.kind == "r" and outer.phase ~= "d")
  if ask.conflict == "fail" or stays and ask.endless then
    return { "deadlock", st.used, st.waiting, swept, more and 2 or 0 }
  end
end

-- kind_place: by access.
local kind_place = place_access

-- kind_remove: when an entry ends, the others go on; the last one to end removes the group's text.
-- It returns how many entries stay, what is to be saved, the earliest deadline that has come
-- nearer, and whether all entries that stay had ended before.
local function kind_remove(at, st, claim, r, wish)
  local count, m = 0, nil
  if st.used > 0 and not wish.forced then
    count, m = remove_entry(at, st, claim, r, wish.lowered)
  elseif st.group_text then
    redis.call("HDEL", at.state, "stem")
    st.group_text = false
  end
  return count, m and m.fields, m and m.sooner, st.used > 0 and count == 0
end

--- @include "line/head"
-- kind_next: the first in line, if nobody holds.
local function kind_next(at, st, budget, arrival)
  if not arrival and st.used > 0 then
    return nil -- held, so there is no need to look who is next
  end
  local claim, r = head(at, st, budget, arrival)
  return claim, r, r and st.used < 1
end

local kind_arrive = kind_next

-- kind_refused: nobody holds, but others come first; or somebody does.
local function kind_refused(_, st, _, swept, more)
  return { st.used < 1 and "ahead" or "held", st.used, st.waiting, swept, more and 2 or 0 }
end

-- kind_hold: the live entry, as the group has read it.
local function kind_hold(at, st, claim)
  local e = st.used > 0 and find_entry(live_group(at, st), claim)
  return e and e.r
end

-- kind_renew: an entry's call moves the deadline that all have.
local kind_renew = renew_entry

-- kind_deadlines: all entries follow the common deadline.
local function kind_deadlines(at, st, m)
  local s = st.used > 0 and live_group(at, st)
  if s then
    set_deadlines(st, s, m)
  end
end

-- kind_left: how long an entry may believe in its hold.
local function kind_left(at, st, claim)
  return entry_remaining(at, st.group, find_entry(st.group, claim))
end
