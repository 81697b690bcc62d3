--- @include "lib/bands"
--- @include "lib/int"
--- @include "lib/record"
--- @include "lib/pack"
--- @include "lib/first"
--- @include "lib/leave"
--- @include "lib/wake"
--- @include "lib/hasten"
-- handoff grants to the first in line for as long as its weight fits, at most
-- budget grants and drops, and returns how many those were. A waiter whose
-- liveness deadline has passed is dropped, one that has become too heavy is
-- removed and told. A grant keeps the deadline that the waiter had: only its
-- own call may lengthen it. What a claim gets beside its weight, if anything, it
-- gets from deal(claim, record, budget), which returns that (nil for nothing fits)
-- and how many drops it took. A weight is at least 1.
local function handoff(at, st, budget, out, deal)
  local band, spent = bands(), 0
  while st.waiting > 0 and spent < budget do
    if st.used >= st.cap and st.cap == at.cap and not deal then
      hasten(at, st, at.parted, out) -- full, so there is no need to look who is next
      break
    end
    local claim = first(at.line)
    if not claim then
      st.waiting = 0
      break
    end
    local text = redis.call("HGET", at.state, "c:" .. claim)
    local r = text and record(text)
    local alive = (tonumber(redis.call("ZSCORE", at.line, "a:" .. claim)) or 0) - band.alive
    if not r or alive <= at.ms then
      leave(at, st, claim, r, false)
    elseif r.weight > st.cap then
      leave(at, st, claim, r, false)
      wake(out, at.channel .. r.node, "too_heavy", at.name, claim, st.cap)
    elseif not deal and r.weight > st.cap - st.used then
      hasten(at, st, at.parted, out, claim, r, alive)
      break
    else
      local what, drops
      if deal then
        what, drops = deal(claim, r, budget - spent)
        spent = spent + drops
        if not what then
          hasten(at, st, at.parted, out, claim, r, alive)
          break
        end
      end
      st.fence = math.max(st.fence + 1, at.us)
      st.used = st.used + r.weight
      st.waiting = st.waiting - 1
      r.phase, r.fence, r.granted = "g", int(st.fence), at.ms
      -- In this order: a full server refuses a first write that grows, and a
      -- line that is emptied in between is a new key, which never expires.
      redis.call("ZREM", at.line, "q:" .. claim)
      redis.call("ZADD", at.line, int(alive), "h:" .. claim)
      redis.call("ZREM", at.line, "a:" .. claim)
      redis.call("HSET", at.state, "c:" .. claim, pack(r))
      wake(out, at.channel .. r.node, "granted", at.name, claim, st.fence, alive - at.ms, what or "", r.secret)
      at.parted = true
    end
    spent = spent + 1
  end
  return spent
end
