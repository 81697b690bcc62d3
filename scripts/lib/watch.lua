--- @include "lib/now"
-- watch gathers what the scripts of a swarm need: its keys, the server's time
-- (ms) and where the bands of its scores begin. Where a newer release of Berth
-- has written the state, it returns that release's format as well, and the
-- script must not write. A member of probes is "<letter>:<node>".
--   p: a node.          score = when it is dead, its last probe + its limit (ms)
--   c: a condemned one. score = condemned + when that was (ms), no two alike
--   t: one that left while a probe of its was unanswered.
--                       score = left + the time it may be forgotten (ms)
-- The state has a record n:<node> for those of p and c, see lib/member, and for
-- those of t the run that has ended.
local function watch(state, probes)
  local width = 17592186044416 -- 2^44, as in lib/bands
  local at = { state = state, probes = probes, ms = now(redis.call("TIME")), condemned = width, left = 2 * width }
  local format = tonumber(redis.call("HGET", state, "fmt")) or 0
  return at, format > 1 and format or nil
end
