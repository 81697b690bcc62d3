--- @include "state/score"
--- @include "state/int"
--- @include "state/record"
--- @include "line/forever"
--- @include "line/place"
--- @include "line/recount"
-- add_tombstone leaves a tombstone of a claim, for so many milliseconds.
local function add_tombstone(at, st, claim, stays)
  redis.call("ZADD", at.line, int(score_tomb + at.ms + stays), "t:" .. claim)
  st.gone = st.gone + 1
end

-- leave takes a claim out of the line and the state, as a hold, which has a deadline, or as a
-- waiter, and lowers the counts. With a word given it leaves a tombstone with the word, for so many
-- milliseconds. Where the line lacks the claim somebody has deleted the line, and the counts are
-- made anew. The first write is a ZREM, so it works on a full server. kind_vacate forgets what a
-- waiter had beside its place, and counts it no more where it stood there; kind_leave takes back what
-- the claim had, and its results are returned; wish is what only the kind reads.
local function leave(at, st, claim, r, deadline, word, stays, wish)
  local absent = false
  if deadline then
    redis.call("ZREM", at.line, "h:" .. claim)
    st.used, st.due = st.used - r.weight, deadline ~= st.due and st.due or nil
    st.forever = st.forever - forever_count(r)
  elseif redis.call("ZREM", at.line, r.place .. place_mark .. claim) > 0 then
    st.waiting = st.waiting - 1
  else
    absent = true
    recount(at, st)
  end
  if not deadline and kind_vacate then
    kind_vacate(at, st, claim, r.place, absent)
  end
  if word then
    redis.call("HSET", at.state, "c:" .. claim, record_stone .. word)
    add_tombstone(at, st, claim, stays)
  else
    redis.call("HDEL", at.state, "c:" .. claim)
  end
  if kind_leave then
    return kind_leave(at, st, claim, r, deadline, wish)
  end
end

-- leave_place takes a claim that died, or has become too heavy, out of the line at a place. Where
-- its record, nil for none, says that it stands or holds elsewhere, only the place goes.
local function leave_place(at, st, claim, place, r)
  if r and r.phase == "w" and r.place == place then
    leave(at, st, claim, r)
  else
    redis.call("ZREM", at.line, place .. place_mark .. claim)
    st.waiting = st.waiting - 1
    if kind_vacate then
      kind_vacate(at, st, claim, place)
    end
  end
end
