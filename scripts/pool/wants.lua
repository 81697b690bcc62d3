--- @include "state/record"
-- What a claim on a pool asks for is the text of its record that only the kind reads:
-- words
--   policy    l: the one that came back first, m: last, r: any
--   kind      o: its own, s: shared, which keeps it from nobody
--   cooldown  how long the resource rests afterwards (ms)
--   bindfor   how long it is bound to the name then (ms), 0 = forever
--   bind      the name of the binding, any bytes up to the end, empty for none
local wants_plain = "^([lm]) ([os]) %d+ (%d+) (.*)$" -- policy, kind, bindfor, bind
local wants_cools = "^%a (%a) (%d+) " -- kind, cooldown

-- wants_read reads it. These are all the fields: only is the one resource that will do,
-- other one that will not; bound and until_then are what the name is bound to and for how
-- long (ms), once pick has looked it up.
local function wants_read(terms)
  local policy, kind, cooldown, bindfor, bind = string.match(record_extra(terms), "^(%a) (%a) (%d+) (%d+) (.*)$")
  return {
    policy = policy, shared = kind == "s", cooldown = tonumber(cooldown), bindfor = tonumber(bindfor), bind = bind,
  }
end
