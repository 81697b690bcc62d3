--- @include "state/score"
--- @include "state/int"
--- @include "state/thin"
-- fatten gives a name its fat form, before the first write that needs it: a name that is
-- thin, not there yet, or has lost its line and with it all that stood there. save writes the
-- values. A hold of a thin name goes along if it lives, or if it is of the claim given.
-- On a full server the first write decides whether the script is refused: what frees begins
-- with one that needs no memory, and what grows, an arrival that may wait, with one that does.
local function fatten(at, st, grows, claim)
  if st.form == "fat" and at.head then
    return
  end
  local hold, anew = st.thin, st.form == "thin" or st.form and not st.pool
  if hold and st.used == 0 then
    hold = hold.claim == claim and hold
    st.used, st.due = hold and 1 or 0, hold and hold.held or 0
  end
  local members = { int(score_mark), "-" }
  if hold then
    members[3], members[4] = int(score_hold + hold.held), "h:" .. hold.claim
  end
  if grows then
    redis.call("ZADD", at.line, unpack(members))
  end
  if anew then
    redis.call("DEL", at.state)
  else
    redis.call("HDEL", at.state, "c:")
  end
  if at.head then -- left over from a state that was evicted, and of no use to anybody
    redis.call("UNLINK", at.line)
  end
  if not grows or at.head then
    redis.call("ZADD", at.line, unpack(members))
  end
  if hold then
    redis.call("HSET", at.state, "c:" .. hold.claim, thin_record(st).text)
    st.exp = math.ceil((hold.held + at.linger) / 1000) * 1000
  end
  if kind_fresh and not st.form then
    kind_fresh(at)
  end
  st.form, st.thin, st.group_text, at.head = "fat", nil, anew and false or st.group_text, "-"
  st.was_exp, st.was_never, st.busy = 0, false, at.ms
end
