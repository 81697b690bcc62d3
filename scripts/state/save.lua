--- @include "state/score"
--- @include "state/int"
--- @include "state/feature"
--- @include "state/values"
--- @include "line/earliest"
--- @include "state/slim"
-- The fields of the state of a fat name
--   v          the values, see state/values
--   c:<claim>  the claim's record, see state/record, or its tombstone: !gone where the claim left
--              while an acquire was unanswered, !released where it was ended by force; a tombstone
--              is forgotten after 60 s
--   stem       of a lock whose owner has entered again, or extended: see owner/group
--   pool       of a pool: its counts, see pool/counts
--   r:<claim>  of a pool: the resource that the claim holds
--   l:<resource>, q:<claim>  of a pool: those who wait for one resource, see pool/lane
--   s:<resource>  of a pool: what the resource has of its own, see pool/settings
--   o:<target> what an operator has changed last, see state/revision; of a pool likewise
--   pause      the last call that has paused the name, or ended its pause, see state/pause
--   replace    the Replace that began last
--   removed    the last Remove
--   refresh    of a pool: when somebody may ask the Source next (ms), and the id of the turn that
--              says so

-- save writes the values of a fat name, with what else is to be written in its state (field,
-- value, ...), and keeps one expiry on all keys of the name. furthest is the furthest deadline
-- that this run has set (ms), nil for none.
local function save(at, st, furthest, fields)
  if kind_thin and not fields and slim(at, st) then
    return
  end
  if st.gone > 0 or st.forever > 0 or st.keep > 0 then
    st.busy = at.ms
  end
  local own, uses = kind_save and kind_save(at, st), feature_first -- the number of the newest feature that the name uses
  local never = st.forever > 0 or st.keep > 0
  -- The furthest deadline inside plus the linger, rounded up to a whole second so that the
  -- expiry seldom has to move. A long lease that has ended must not keep the state.
  local last = furthest or at.ms
  local idle = st.used <= 0 and st.waiting <= 0 and st.exp > at.ms + 2 * at.linger + 1000
  if idle and st.gone > 0 then
    local stone = redis.call("ZREVRANGEBYSCORE", at.line, int(score_tomb + score_width - 1), int(score_tomb),
      "WITHSCORES", "LIMIT", "0", "1")[2]
    last = math.max(last, stone and tonumber(stone) - score_tomb or 0)
  end
  if st.rev > at.ms - values_recent and (idle or st.rev ~= st.was_rev) -- else the expiry heeds it
    and not (st.pool and st.keep > 0) then
    last = math.max(last, math.min(st.rev, at.ms + 1000) + values_recent) -- until then it is known what was changed
  end
  last = math.max(last, st.pause)
  local exp = math.ceil((last + at.linger) / 1000) * 1000
  if st.pool and never and st.was_never and st.pause == 0 and not furthest then
    exp = st.exp -- it counts for nothing, until nothing keeps the pool
  end
  st.exp = math.min(idle and exp or math.max(st.exp, exp), values_last)
  local few = values_none_of_them
  if st.gone ~= 0 or st.forever ~= 0 or st.pause ~= 0 or st.look ~= 0 then
    few = string.format(values_fewest, st.gone, st.forever, st.keep, st.pause, st.look, st.rev)
  elseif st.keep ~= 0 or st.rev ~= 0 then
    few = string.format(values_quietly, st.keep, st.rev)
  end
  local due = earliest(at, st)
  if due == 0 or due > values_last then
    due = values_last
  end
  local all = { "v", string.format(values_form, uses, st.fence, st.exp, due, st.ticket, st.busy,
    values_base + math.max(st.used, 0), values_line + math.max(st.waiting, 0), values_base + st.cap) .. few,
    unpack(fields or {}) }
  if own then
    all[#all + 1], all[#all + 2] = "pool", own
  end
  redis.call("HSET", at.state, unpack(all))
  if never == st.was_never and (never or st.exp == st.was_exp) then
    return
  end
  for _, key in ipairs({ at.state, at.line, unpack(at.others or {}) }) do
    if never then
      redis.call("PERSIST", key)
    else
      redis.call("PEXPIREAT", key, int(st.exp))
    end
  end
end
