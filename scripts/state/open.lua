--- @include "state/load"
-- open makes of what was fetched what a step works with: the run, the state, and the
-- claim's record as text. These are all the fields of a run:
--   state, line   the keys of the name; a pool has items, free and bindings too
--   others        the keys beside state and line, or nil
--   linger (ms), channel (the prefix of a node's channel), name   as the call gives them
--   ms, us        the server's time
--   newer         what load says of a state that the script must not write, or nil
--   out           the messages that tell will publish, nil for none: channel, text, ...
local function open(keys, linger, channel, name, t, v)
  local us = t[1] * 1000000 + t[2]
  local ms = (us - us % 1000) / 1000 -- as state/now has it
  local st, newer = load(v)
  return {
    state = keys[1], line = keys[2], linger = tonumber(linger), channel = channel, name = name,
    ms = ms, us = us, newer = newer,
  }, st, v[6]
end
