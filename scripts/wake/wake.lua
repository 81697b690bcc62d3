--- @include "state/int"
-- A message is a word, a name, and what belongs to the word; each has its size in bytes and
-- a colon before it.
--   granted    a hand-off has granted the claim: claim, fence, ms left (13 digits), resource ("" but in a
--              pool), the claim's secret, without which nobody believes it
--   too_heavy  the waiting claim weighs more than the capacity and was removed: claim, capacity
--   absent     what the waiting claim asked for alone has left the pool, and the claim was removed: claim
--   released   somebody has ended the hold or the wait by force: claim
--   wanted     somebody wants the hold back: claim
--   next       a deadline has come nearer, for the node of the first in line: ms until then
--   echo       nothing: a node sends it to itself, to find out whether its subscription is deaf
-- What the plain case of a grant begins with, before the name and its size; what stands before each other part; and
-- what stands between the name and the resource of one.
local wake_granted = "7:granted"
local wake_size = "%d:"
local wake_fence = "16:"
local wake_left = "13:%013d"
local wake_lasts = "%013d"
local wake_secret = "0:11:" -- no resource, and the secret
local wake_proof = "11:"
local wake_resource = "%d:%s16:%s13:%013d%d:"

-- wake adds one for a node to those that tell publishes when all is written.
local function wake(at, node, ...)
  local parts = { ... }
  for i, field in ipairs(parts) do
    field = type(field) == "number" and int(field) or field
    parts[i] = string.format("%d:", #field) .. field
  end
  at.out = at.out or {}
  at.out[#at.out + 1], at.out[#at.out + 2] = at.channel .. node, table.concat(parts)
end
