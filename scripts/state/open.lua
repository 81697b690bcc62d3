--- @include "state/load"
--- @include "state/thin"
--- @include "state/now"
-- open makes of what was fetched what a step works with: the run, the state, and the
-- claim's record as text. top is the first member of the line, false where that is still to be
-- read. It only parses: what a thin name cannot express is for fatten to write. These are all the fields of a run:
--   state, line   the keys of the name; a pool has items, free and bindings too
--   others        the keys beside state and line, or nil
--   linger (ms), channel (the prefix of a node's channel), name   as the call gives them
--   ms, us        the server's time
--   head          the first member of the line, nil where there is no line
--   newer         what load says of a state that the script must not write, or nil
--   out           the messages that tell will publish, nil for none: channel, text, ...
local function open(keys, linger, channel, name, claim, t, v, top)
  local ms, us = now(t)
  local known, st, newer = v[2]
  if top == false then
    top = redis.call("ZRANGE", keys[2], "0", "0")[1]
  end
  if v.thin then
    st, newer = thin_open(keys[1], v.thin, ms)
    if st.thin and st.thin.claim == claim then
      known = thin_record(st).text
    end
  else
    st, newer = load(v[1])
    if st.form and not top then -- somebody has deleted the line: what it had is gone
      st.used, st.waiting, st.gone, st.forever, st.due, st.look = 0, 0, 0, 0, 0, 0
    elseif not st.form and not newer then
      newer = tonumber(redis.call("HGET", keys[1], "fmt") or nil)
    end
    if st.pause <= ms then
      st.pause = 0
    end
  end
  return {
    state = keys[1], line = keys[2], linger = linger + 0, channel = channel, name = name,
    ms = ms, us = us, head = top, newer = newer,
  }, st, known
end
