--[[
lock_info: a lock as it is now: its entries, the outermost first, and what re-entries did.
KEYS[1] state (HASH v -> values, c:claim -> record, stem; STRING see state/thin)
KEYS[2] line (ZSET place-claim, h:, t:claim, - -> score, see state/score)
RETURNS {"info", now_ms, waiting, count, worked_at, extended_ms, last_ms, extended_at, ...} | {"incompatible", format}
REPLAY reads only    COST O(log n) + O(entries)
]]
-- For each entry three fields follow: the claim, the milliseconds left (-1 = no
-- end) and the record.
--- @include "state/fetch"
--- @include "state/open"
--- @include "state/record"
--- @include "owner/live"
--- @include "line/remaining"
local time, kept, top = fetch(KEYS, nil, "stem")
local at, st = open(KEYS, "0", "", "", nil, time, kept, top)
st.group_text = kept[3]
if at.newer then
  return { "incompatible", at.newer }
end
local waiting, s = st.waiting, st.used > 0 and live_group(at, st)
if not s then
  return { "info", at.ms, waiting, 0, 0, 0, 0, 0 }
end
local reply = { "info", at.ms, waiting, s.count, s.worked_at, s.extended, s.last, s.extended_at }
for _, e in ipairs(s.entries) do
  local n = #reply
  reply[n + 1], reply[n + 2], reply[n + 3] = e.claim, remaining(at, e.r.held), record_write(e.r)
end
return reply
