--- @include "state/score"
--- @include "state/int"
--- @include "pool/item"
--- @include "pool/free"
--- @include "pool/lane"
-- settle writes what has become of a resource, and brings the free ones, the line and the
-- counts in step with it. Free are those that are not leaving, do not rest and have room for
-- one more holder. One that is leaving and that nobody
-- holds is gone.
local function settle(at, st, key, i)
  local p, was, leased = st.pool, i.was, #i.claims > 0
  local gone = i.leaving and not leased
  local listed = not i.leaving and i.ends == 0 and #i.claims < i.max
  if i.ends ~= was.ends and i.ends > 0 and not gone then
    redis.call("ZADD", at.line, int(score_rest + i.ends), "e:" .. key)
  elseif was.ends > 0 and (gone or i.ends == 0) then
    redis.call("ZREM", at.line, "e:" .. key)
  end
  -- One that is leaving has no expiry any more, and says so in the line.
  local leaves = gone and 0 or i.leaving and score_forever or i.expiry
  local left = was.leaving and score_forever or was.expiry
  if leaves == 0 and left > 0 then
    redis.call("ZREM", at.line, "x:" .. key)
  elseif leaves > 0 and leaves ~= left then
    redis.call("ZADD", at.line, int(score_expiry + leaves), "x:" .. key)
  end
  if gone then
    redis.call("HDEL", at.items, "i" .. key)
    if i.own then
      redis.call("HDEL", at.state, "s:" .. key)
    end
    p.resources = p.resources - 1
  else
    redis.call("HSET", at.items, "i" .. key, item_write(i)) -- a swap begins here: with what needs memory
  end
  if i.listed and not listed then
    free_drop(at, key)
    p.free = p.free - 1
  elseif listed and not i.listed then
    free_push(at, st, key)
    p.free = p.free + 1
  end
  p.leased = p.leased + (leased and 1 or 0) - (was.leased and 1 or 0)
  p.leaving = p.leaving + (i.leaving and not gone and 1 or 0) - (was.leaving and 1 or 0)
  lane_touch(at, st, key)
  i.listed, was.ends, was.expiry, was.leased, was.leaving = listed, i.ends, i.expiry, leased, i.leaving
end
