--- @include "fast/beats"
-- fast_renew_batch is fast_renew of several claims of one name: claim, mode, ... from a place on. It returns the reply.
local function fast_renew_batch(beats, v, state, line, calls, from)
  local text, fields, members = v[1], {}, {}
  local call = redis.call
  local behind = text and fast_behind(beats, text)
  if not behind or beats.alone then
    return nil
  end
  for i = from, #calls, 2 do
    fields[#fields + 1], members[#members + 1] = "c:" .. calls[i], "h:" .. calls[i]
    if calls[i + 1] ~= "beat" then
      return nil
    end
  end
  local n, texts, scores = #fields, call("HMGET", state, unpack(fields)), {}
  local reply = { "held" }
  local exp, reach, furthest = string.sub(text, values_exp, values_due - 2), "", nil
  for i = 1, n do
    if not fast_beating(beats, texts[i]) then
      return nil
    elseif beats.reach > reach then
      reach, furthest = beats.reach, beats.exp
    end
    -- The last one comes first: for a short line that is less work.
    scores[2 * (n - i) + 1], scores[2 * (n - i) + 2] = score_held .. beats.ends, members[i]
    reply[2 * i], reply[2 * i + 1] = beats.lease, string.sub(texts[i], record_fence, record_fence_end)
  end
  if reach > exp then
    exp = furthest
  end
  if call("PEXPIREAT", line, exp) ~= 1 then -- first what needs no memory
    return nil
  elseif call("ZADD", line, "XX", "CH", unpack(scores)) ~= n then
    for _, score in ipairs(call("ZMSCORE", line, unpack(members))) do
      if not score then -- whoever the line lacks is for the general way, which renews the others alike
        return nil
      end
    end
  end
  fast_write(beats, text, behind, state, line, exp)
  return reply
end
