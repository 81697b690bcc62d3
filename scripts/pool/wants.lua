--- @include "state/record"
-- What a claim on a pool asks for is the text of its record that only the kind reads:
-- words
--   kind      o: its own, s: shared, which keeps it from nobody, a: alone: its own, if nobody holds it
--   cooldown  how long the resource rests afterwards at least (ms)
--   bindfor   how long it is bound to the name then (ms), 0 = forever, - = as pool/settings say
--   patience  how long it waits for the resource that it is bound to (ms), score_forever = it takes
--             no other
--   resource  the only one that will do, with its size in bytes and a colon before it; empty for any
--   bind      the name of the binding, any bytes up to the end, empty for none
local wants_plain = "^([os]) %d+ (%S+) %d+ 0:(.*)$" -- kind, bindfor, bind
local wants_own = "^o %d+ %S+ %d+ 0:$" -- of a claim that wants any for its own, and names no binding
-- The end of the terms of such a claim without owner, label, metadata and cooldown, from the owner's size on, which is
-- one digit before their first colon.
local wants_bare = "0:0:0:10:o 0 - 0 0:"
local wants_colon = ":"
local wants_any = "^%a %d+ %S+ %d+ 0:$" -- of a claim that names no resource and no binding
local wants_cools = "^(%a) (%d+) " -- kind, cooldown

-- wants_back reads what counts once a hold ends: a part of the fields of wants_read.
local function wants_back(terms)
  local kind, cooldown = string.match(record_extra(terms), wants_cools)
  return { shared = kind == "s", alone = kind == "a", cooldown = tonumber(cooldown) }
end

-- wants_read reads it. These are all the fields: other is a resource that will not do; bound,
-- until_then and policy are what the name is bound to, for how long (ms), and the pool's policy, once pick
-- has looked them up; resource is nil for any, and bindfor as the settings say.
local function wants_read(terms)
  local extra = record_extra(terms)
  local kind, cooldown, bindfor, patience, size, from = string.match(extra, "^(%a) (%d+) (%S+) (%d+) (%d+):()")
  return {
    shared = kind == "s", alone = kind == "a", cooldown = tonumber(cooldown),
    bindfor = tonumber(bindfor), patience = tonumber(patience),
    resource = size ~= "0" and string.sub(extra, from, from + size - 1) or nil,
    bind = string.sub(extra, from + size),
  }
end
