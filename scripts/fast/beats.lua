--- @include "state/score"
--- @include "state/values"
--- @include "state/record"
-- fast_beats is what the heartbeats of a script have in common. These are its fields:
--   now, linger   the server's time (ms, 13 digits), and the linger (ms)
--   from, whose   where the fixed terms begin in a record, and what stands before them from the limit on
--   calm, alone   what the last plain values had behind busy, and whether all that is held is one hold of weight 1
--   rest          what the last record had behind its secret
--   lease, ends   the lease of that record (ms), and when its hold ends from now on (ms, 13 digits)
--   reach, exp    until when its name has to stay, and that rounded up (ms, 13 digits)
local function fast_beats(t, linger, node)
  return {
    now = string.sub(values_us(t), values_fence_from, values_millis), linger = linger,
    from = record_held_by + #node + 1, whose = record_unlimited .. record_gap .. node .. record_gap,
  }
end

-- fast_behind is what values have behind busy, if they are plain: nobody waits, and no hold has expired; else nil.
local function fast_behind(beats, text)
  local sub = string.sub
  local behind = sub(text, values_busy_end + 1)
  if behind ~= beats.calm then
    if sub(text, values_calm_from, values_calm_end) ~= values_calm
      or sub(text, values_waiting, values_waiting_end) ~= values_nobody then
      return nil
    end
    beats.calm, beats.alone = behind, sub(text, values_used, values_used_end) == values_one
  end
  if text < values_newer and sub(text, values_due, values_due_end) > beats.now then
    return behind
  end
end

-- fast_beating says whether a record is that of a hold of the node that has been confirmed and renews.
local function fast_beating(beats, record)
  local from, sub = beats.from, string.sub
  if not record or sub(record, 1, record_phase) ~= record_holds or sub(record, record_limit, from - 1) ~= beats.whose then
    return false
  elseif sub(record, from + record_secret) == beats.rest then
    return true
  end
  local behind, lease = string.match(record, record_renewing, from)
  local reach = lease and beats.now + lease + beats.linger
  if not reach or reach > values_last then
    return false
  end
  local format = string.format
  beats.rest = behind == from + record_secret and sub(record, behind) -- else the kind is not in it
  beats.lease, beats.ends = lease, format(values_ms, beats.now + lease)
  beats.reach, beats.exp = format(values_ms, reach), format(values_ms, math.ceil(reach / 1000) * 1000)
  return true
end

-- fast_write writes what changes in a state once its holds have other deadlines.
local function fast_write(beats, text, behind, state, line, exp)
  local sub = string.sub
  local call = redis.call
  if exp ~= sub(text, values_exp, values_due - 2) then
    call("PEXPIREAT", state, exp)
  end
  local due = beats.ends
  if not beats.alone then
    due = call("ZRANGEBYSCORE", line, score_first_hold, score_last_hold, "WITHSCORES", "LIMIT", "0", "1")[2]
    due = sub(due, score_deadline)
  end
  call("HSET", state, "v", sub(text, 1, values_exp - 1) .. exp .. values_gap .. due
    .. sub(text, values_due_end + 1, values_busy_end) .. behind)
end
