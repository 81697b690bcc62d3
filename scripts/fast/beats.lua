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

-- fast_calm reads values, of which those behind busy differ from the last ones, and says whether they are plain.
local function fast_calm(beats, text, behind)
  local plain = string.sub(text, values_calm_from, values_calm_end) == values_calm
    and string.sub(text, values_waiting, values_waiting_end) == values_nobody
  beats.calm, beats.alone = plain and behind, string.sub(text, values_used, values_used_end) == values_one
  return plain
end

-- fast_behind is what values have behind busy, if they are plain: nobody waits, and no hold has expired; else nil.
local function fast_behind(beats, text)
  local behind = string.sub(text, values_busy_end + 1)
  if string.sub(text, 1, #values_known) == values_known and string.sub(text, values_due, values_due_end) > beats.now
    and (behind == beats.calm or fast_calm(beats, text, behind)) then
    return behind
  end
end

-- fast_lease reads the fixed terms of a record, which differ from the last ones, and says whether its hold renews.
local function fast_lease(beats, record)
  local from, format = beats.from, string.format
  local behind, lease = string.match(record, record_renewing, from)
  local reach = lease and beats.now + lease + beats.linger
  if not reach or reach > values_last then
    return false
  end
  beats.rest = behind == from + record_secret and string.sub(record, behind) -- else the kind is not in it
  beats.lease, beats.ends = lease, format(values_ms, beats.now + lease)
  beats.reach, beats.exp = format(values_ms, reach), format(values_ms, math.ceil(reach / 1000) * 1000)
  return true
end

-- fast_beating says whether a record is that of a hold of the node that has been confirmed and renews.
local function fast_beating(beats, record)
  local sub = string.sub
  return record and sub(record, 1, record_phase) == record_holds and sub(record, record_limit, beats.from - 1) == beats.whose
    and (sub(record, beats.from + record_secret) == beats.rest or fast_lease(beats, record))
end

-- fast_write writes what changes in a state once its holds have other deadlines.
local function fast_write(beats, text, behind, state, line, exp)
  local sub = string.sub
  local call = redis.call
  if exp ~= sub(text, values_exp, values_due - 2) then
    call("PEXPIREAT", state, exp)
  end
  local busy, due = sub(text, values_busy, values_busy_end), beats.ends
  if not beats.alone then
    busy = beats.now
    due = call("ZRANGEBYSCORE", line, score_first_hold, score_last_hold, "WITHSCORES", "LIMIT", "0", "1")[2]
    due = sub(due, score_deadline)
  end
  call("HSET", state, "v", sub(text, 1, values_exp - 1) .. exp .. values_gap .. due
    .. sub(text, values_due_end + 1, values_busy - 1) .. busy .. behind)
end
