-- wants reads what a claim on a pool asks for: the fourth text of its record's tail,
-- words and the name of a binding:
--   policy    l: the one that came back first, m: last, r: any
--   kind      o: its own, s: shared, which keeps it from nobody
--   cooldown  how long the resource rests afterwards (ms)
--   bindfor   how long it is bound to the name then (ms), 0 = forever
local function wants(tail)
  local from = string.match(tail, "^%d+ %S+ %a %d+ %d+ %d+ %-?%d+ ()")
  local size, after
  for _ = 1, 4 do
    size, after = string.match(tail, "^(%d+):()", from)
    from = after + size
  end
  local policy, kind, cooldown, bindfor, bind = string.match(
    string.sub(tail, after, from - 1), "^(%a) (%a) (%d+) (%d+) (.*)$")
  return {
    policy = policy, shared = kind == "s", cooldown = tonumber(cooldown), bindfor = tonumber(bindfor), bind = bind,
  }
end
