--[[
lock_info: a lock as it is now: its entries, the outermost first, and what re-entries did.
KEYS[1] state (HASH field -> number, c:claim -> record, stem)
KEYS[2] line (ZSET h:, a:, q:, t:claim -> score, see state/band)
RETURNS {"info", now_ms, waiting, count, worked_at, extended_ms, last_ms, extended_at, ...} | {"incompatible", format}
REPLAY reads only    COST O(log n) + O(entries)
]]
-- For each entry three fields follow: the claim, the milliseconds left (-1 = no
-- end) and the record.
--- @include "state/fetch"
--- @include "state/now"
--- @include "state/load"
--- @include "state/band"
--- @include "state/record"
--- @include "owner/group"
--- @include "line/span"
local time, kept = fetch(KEYS[1], nil, "stem")
local at = { state = KEYS[1], line = KEYS[2], ms = now(time) }
local st, newer = load(kept)
st.stem = kept[7]
if newer then
  return { "incompatible", newer }
end
local waiting = redis.call("ZCOUNT", at.line, band_alive + at.ms + 1, band_queue - 1)
local s = group(at, st)
if not s then
  return { "info", at.ms, waiting, 0, 0, 0, 0, 0 }
end
local reply = { "info", at.ms, waiting, s.count, s.worked_at, s.extended, s.last, s.extended_at }
for _, e in ipairs(s.entries) do
  local n = #reply
  reply[n + 1], reply[n + 2], reply[n + 3] = e.claim, span(at, e.r.held), record_write(e.r)
end
return reply
