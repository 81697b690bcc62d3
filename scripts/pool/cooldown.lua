--- @include "pool/settings"
-- cooldown_of is how long a resource rests after the hold of a claim (ms): its own cooldown, else the
-- pool's, or what the call asks for if that is longer. w is what the claim wants, nil where
-- its record is gone. Nobody has used what a check held alone.
local function cooldown_of(at, st, key, i, w)
  local asked = w and w.cooldown or 0
  if w and w.alone then
    return asked
  end
  local own = settings_own(at, key, i)
  return math.max(asked, own or settings_of(st).cooldown or 0)
end

-- cooldown_end is when the rest after a hold ends (ms), 0 for none, and why the resource rests: by the
-- cooldown, counted from a moment (ms), or for as long as the holder asks (ms) if that is no shorter.
local function cooldown_end(at, st, key, i, w, from, rest, reason)
  local cooldown = cooldown_of(at, st, key, i, w)
  local ends = cooldown > 0 and from + cooldown or 0
  if rest > 0 and at.ms + rest >= ends then
    return at.ms + rest, reason
  end
  return ends, ""
end
