--- @include "state/score"
--- @include "state/now"
-- open_swarm gathers what the scripts of a swarm need: its keys, the server's time
-- (ms) and where its score ranges begin. Where another release of Berth
-- has written the state, it returns that release's format as well, and the
-- script must not write. The scores of probes are
--   p:<node>  of a node that probes: when it is dead, its last probe + its limit (ms)
--   c:<node>  of a condemned one: score_width + when that was (ms), no two alike
--   t:<node>  of one that left while a probe of its was unanswered: 2 * score_width + when it
--             may be forgotten (ms)
-- The state has a record n:<node> for those of p and c, see swarm/member, and for
-- those of t the run that has ended.
local function open_swarm(state, probes)
  local at = { state = state, probes = probes, ms = now(redis.call("TIME")), condemned = score_width }
  at.left = 2 * score_width
  local format = tonumber(redis.call("HGET", state, "fmt")) or 0
  return at, format ~= 0 and format ~= 2 and format or nil
end
