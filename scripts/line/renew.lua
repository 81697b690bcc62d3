--- @include "state/band"
--- @include "state/record"
--- @include "state/least"
--- @include "state/save"
--- @include "line/lookup"
--- @include "line/first"
--- @include "line/leave"
--- @include "line/moves"
--- @include "line/span"
--- @include "line/expire"
--- @include "line/handoff"
--- @include "line/tide"
--- @include "line/reply"
--- @include "wake/tell"
-- renew answers the own calls of a node's claims: claim, mode, ... The reply is
--   status, next_ms, flags, setting, then of each claim: word, left_ms, fence
-- and then of each what only the kind says; see line/reply. The words are
--   held       it holds
--   waiting    it waits in line
--   unknown    nothing is known of it, or its deadline has passed
--   taken      another node has resumed it
--   too_heavy  it waited and weighs more than the capacity: removed; in place of the
--              time left and the fence, how much is held and how many wait
--   gone, released    what a tombstone says
local function renew(at, st, node, calls)
  if at.newer then
    return { "incompatible", at.newer }
  end
  local reply = { "renewed", -1, 0, kind_setting and kind_setting(st) or st.cap }
  local budget, m = { left = 100 }, moves()
  local texts, scores, extras = lookup(at, st, node, calls)
  local parted, holds = false, {}
  for n, text in ipairs(texts) do
    local claim, r = calls[2 * n - 1], text and record_read(text)
    local held, alive = tonumber(scores[2 * n - 1]), tonumber(scores[2 * n])
    local word, left, fence = "unknown", 0, 0
    if not r then
      word = text and string.match(text, record_word) or word
    elseif r.node ~= node then
      word = "taken"
    else
      if held and held > at.ms then
        r.held = held
        holds[n] = kind_hold == false and r or kind_hold(at, st, claim)
      end
      if holds[n] then
        word = "held"
        kind_renew(at, st, claim, r, calls[2 * n], m)
      elseif alive and alive - band_alive > at.ms and kind_heavy and kind_heavy(st, r) then
        parted = parted or first(at.line) == claim
        leave(at, st, claim, r)
        word, left, fence = "too_heavy", st.used, st.waiting
      elseif alive and alive - band_alive > at.ms then
        word, left = "waiting", r.wait
        m.scores[#m.scores + 1], m.scores[#m.scores + 2] = band_alive + at.ms + left, "a:" .. claim
        m.furthest = math.max(m.furthest or 0, at.ms + left)
      end
    end
    reply[3 * n + 2], reply[3 * n + 3], reply[3 * n + 4] = word, left, fence
  end
  if st.fmt > 0 then
    if kind_move then
      kind_move(at, st, m)
    end
    for n = 1, #texts do
      local r = holds[n]
      if r then
        reply[3 * n + 3] = kind_left and kind_left(at, st, calls[2 * n - 1]) or span(at, r.held)
        reply[3 * n + 4] = tonumber(r.fence)
      end
    end
    moves_write(at, st, m)
    local dead, ends = expire(at, st, budget)
    handoff(at, st, budget, parted or dead)
    save(at, st, m.furthest, m.fields)
    hasten(at, st, least(m.sooner, ends))
    reply_tide(at, st, node, budget, reply)
    tell(at)
  end
  for n = 1, extras and #texts or 0 do
    reply[#reply + 1] = extras[n]
  end
  return reply
end
