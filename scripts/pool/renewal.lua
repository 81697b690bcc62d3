--- @include "line/renewal"
--- @include "pool/settings"
--- @include "pool/lane"
-- renew_leased is renew_hold of a pool. Who waits for what the claim holds is told of a deadline that has
-- come nearer. A lease that is longer than the hold's, and than the pool's limit, is refused: the call
-- counts as a beat then. It returns whether it is.
local function renew_leased(at, st, claim, r, mode, m)
  local ends, most, asks = r.held, settings_of(st).lease, string.match(mode, renewal_asks)
  local limited = asks and most and settings_above(asks + 0, most) and r.lease > 0
    and settings_above(asks + 0, r.lease)
  renew_hold(at, st, claim, r, limited and "beat" or mode, m)
  if r.held < ends and st.pool.parked > 0 then
    lane_touch(at, st, redis.call("HGET", at.state, "r:" .. claim) or "")
  end
  return limited
end
