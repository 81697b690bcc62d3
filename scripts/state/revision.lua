--- @include "state/score"
--- @include "state/values"
--- @include "state/int"
-- What an operator has changed last is a text in a field of the state, so that a call that comes late
-- undoes nothing newer: words
--   rev   the name's revision then, see state/values
--   by    the id of the call
--   what  what it has changed, in words: any bytes, up to the end
-- The fields are
--   o:<target>  of a setting; the target is "" for one of the name, or a resource of a pool
--   pause       of a pause, see state/pause
--   replace     of a pool: the last Replace that began
--   removed     of a pool: the last Remove; what is how many it has removed
-- In a pool the line has the moment when o:<target> may be forgotten, see state/score. The others
-- stay for as long as the fat form does.

-- revision_rest says in words how long a resource is to rest (ms, 0 = no more), and why.
local function revision_rest(lasts, reason)
  if lasts == 0 then
    return "rest ended"
  end
  local text = lasts >= score_forever and "rest without end" or string.format("rest %.10gs", lasts / 1000)
  return reason ~= "" and text .. ": " .. reason or text
end

-- revision_capacity says in words which capacity was set, and which one was there before.
-- revision_before reads the latter.
local function revision_capacity(cap, before)
  return string.format("capacity %d, before %d", cap, before)
end
local function revision_before(what)
  return (string.match(what, " (%d+)$") or 0) + 0
end

-- revision_raise raises the revision of a name: through a flush as well.
local function revision_raise(at, st)
  st.rev = math.max(st.rev + 1, at.ms)
end

-- revision_read reads such a field of a fat name: rev, by and what; rev is 0 where there is none. text is the
-- field where it was read already, false for none.
local function revision_read(at, field, text)
  text = text == nil and redis.call("HGET", at.state, field) or text
  if not text then
    return 0, nil, nil
  end
  local rev, by, what = string.match(text, "^(%d+) (%S+) (.*)$")
  return (rev or 0) + 0, by, what
end

-- revision_text is the counterpart of revision_read, of what changes now.
local function revision_text(st, by, what)
  return string.format("%d ", st.rev) .. by .. " " .. what
end

-- revision_forgotten says whether such a field of a pool, o:<target>, may be forgotten by now.
local function revision_forgotten(at, field)
  local moment = redis.call("ZSCORE", at.line, field)
  return not moment or moment - score_op <= at.ms
end

-- revision_stale answers an operator's call that comes late: that has seen the name at a lower revision
-- (stamp) than that of the last change by another call, which is in the field. i is the item of the
-- target, if that is a resource: one that was added since is another one. It returns the reply,
-- nil for a call that may go on; and what the call has changed, if it has run before. It writes
-- nothing. Whoever goes on says so by revision_write. text is as in revision_read.
local function revision_stale(at, st, field, stamp, by, i, text)
  if st.form ~= "fat" then
    return nil
  end
  local rev, last, what = revision_read(at, field, text)
  if last == by then
    return nil, what
  elseif rev > stamp and not (st.pool and string.find(field, "^o:") and revision_forgotten(at, field)) then
    return { "stale", rev, string.match(field, "^o:(.*)$") or "", what }
  elseif i and i.rev > stamp then
    return { "stale", i.rev, string.match(field, "^o:(.*)$"), "added" }
  end
end

-- revision_superseded answers a call that is part of a Replace, or begins one, where a newer Replace or Remove
-- decides, or the pool was forgotten.
local function revision_superseded(at, st)
  local gen = st.pool.gen
  local replaced = gen > 0 and revision_read(at, "replace") == gen
  return { "stale", gen, "", replaced and "replaced" or gen > 0 and "removed" or "forgotten" }
end

-- revision_write notes what a call changes now, and raises the revision. It returns what save has to write: the
-- field and its text. The name is fat, and a first write has been.
local function revision_write(at, st, field, by, what)
  revision_raise(at, st)
  if st.pool and field ~= "pause" then
    redis.call("ZADD", at.line, int(score_op + at.ms + values_recent), field)
  end
  return { field, revision_text(st, by, what) }
end
