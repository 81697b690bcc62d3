--- @include "state/record"
--- @include "state/least"
--- @include "state/save"
--- @include "line/lookup"
--- @include "line/thin"
--- @include "line/leave"
--- @include "line/first"
--- @include "line/patrol"
--- @include "line/batch"
--- @include "line/remaining"
--- @include "line/expire"
--- @include "line/handoff"
--- @include "line/deadline"
--- @include "line/wanted"
--- @include "line/reply"
--- @include "wake/publish"
-- renew answers the own calls of a node's claims: claim, mode, ... The reply is
--   status, next_ms, flags, setting, then of each claim: word, left_ms, fence
-- and then of each what only the kind says; see line/reply. The words are
--   held       it holds
--   wanted     it holds, and somebody wants it back
--   limited    it holds, and asks for a longer lease than it may: the lease is as it was
--   waiting    it waits in line
--   asked      it waits, stands first, and has asked for holds of others
--   unknown    nothing is known of it, or its deadline has passed
--   taken      another node has resumed it
--   too_heavy  it waited and weighs more than the capacity: removed; in place of the
--              time left and the fence, how much is held and how many wait
--   gone, released    what a tombstone says
local function renew(at, st, node, calls)
  if at.newer then
    return { "incompatible", at.newer }
  elseif st.form == "thin" then
    local reply = renew_thin(at, st, node, calls)
    if reply then
      return reply
    end
  end
  local reply = { "renewed", -1, 0, kind_setting and kind_setting(st) or st.cap }
  local budget, m = { left = 100, swept = 0 }, batch()
  local texts, held, stands, extras = lookup(at, st, node, calls)
  local head_left, holds, beats, waits = false, {}, {}, {}
  for n, r in ipairs(texts) do
    local claim, word, left, fence = calls[2 * n - 1], "unknown", 0, 0
    if type(r) ~= "table" then
      word = r and string.match(r, record_word) or word
    elseif r.node ~= node then
      word = "taken"
    else
      if held[n] and held[n] > at.ms then
        r.held = held[n]
        holds[n] = kind_hold == false and r or kind_hold(at, st, claim)
      end
      if holds[n] then
        local limited = kind_renew(at, st, claim, r, calls[2 * n], m)
        word = limited and "limited" or r.wanted ~= "" and "wanted" or "held"
      elseif stands[n] and r.alive > at.ms and kind_heavy and kind_heavy(st, r) then
        head_left = head_left or first(at.line) == claim
        leave(at, st, claim, r)
        word, left, fence = "too_heavy", st.used, st.waiting
      elseif stands[n] and r.alive > at.ms then
        word, left, r.alive = "waiting", r.wait, at.ms + r.wait
        beats[#beats + 1], beats[#beats + 2] = "c:" .. claim, record_write(r)
        waits[#waits + 1] = { claim = claim, r = r, at = 3 * n + 2, asks = calls[2 * n] == "want" }
        m.furthest = math.max(m.furthest or 0, at.ms + left)
      end
    end
    reply[3 * n + 2], reply[3 * n + 3], reply[3 * n + 4] = word, left, fence
  end
  if st.form then
    if kind_deadlines then
      kind_deadlines(at, st, m)
    end
    for n = 1, #texts do
      local r = holds[n]
      if r then
        reply[3 * n + 3] = kind_left and kind_left(at, st, calls[2 * n - 1]) or remaining(at, r.held)
        reply[3 * n + 4] = tonumber(r.fence)
      end
    end
    batch_write(at, st, m)
    if beats[1] then
      redis.call("HSET", at.state, unpack(beats)) -- before the hand-off, which may grant to one of them
    end
    local ends = expire(at, st, budget)
    if beats[1] then
      head_left = patrol(at, st, budget, 32) or head_left
    end
    handoff(at, st, budget, head_left)
    save(at, st, m.furthest, m.fields)
    notify(at, st, least(m.sooner, ends))
    wanted_by(at, st, waits, reply, budget.left)
    reply_next(at, st, node, budget, reply, waits)
    publish(at)
  end
  for n = 1, extras and #texts or 0 do
    reply[#reply + 1] = extras[n]
  end
  return reply
end
