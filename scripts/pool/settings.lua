-- The settings of a pool end the text of its counts, see pool/counts: words, each - where nobody has
-- said anything
--   by        p: a process has set something, o: an operator has
--   policy    l: the resource that came back first comes next, m: last, r: any
--   cooldown  how long a resource rests after each hold (ms)
--   sharers   how many may hold one resource at once
--   bindfor   how long a binding lasts (ms), 0 = forever
--   lease     the longest lease that a claim may ask for (ms), 0 = no limit
--   hold      the longest maximum hold (ms), 0 = no limit
-- A resource may have settings of its own, which go with it: the field s:<resource> of the state has the
-- words cooldown, sharers and bindfor, - = as the pool.
-- What a process says comes as a pattern that the settings match if they agree: of each word it has
-- that word, or %S+ for nothing. For by it has %S, or settings_strict if the process goes by no others.
local settings_none = "- - - - - - -"
local settings_words = "^(%S) (%S) (%S+) (%S+) (%S+) (%S+) (%S+)$"
local settings_asked = "^%S (%S) %S+ %S+ (%S+) (%S+) (%S+)$" -- policy, bindfor, lease, hold
local settings_cools = "^%S %S (%S+)" -- cooldown
local settings_own_words = "^(%S+) (%S+) (%S+)$"
local settings_own_unset = "- - -"
local settings_strict = "[-op] "
local settings_bindfor = 3600000
local settings_sharers = 4 -- the place of that word

-- settings_of reads them, each nil where it is unset.
local function settings_of(st)
  local p = st.pool
  if p.settings == settings_none then
    return {}
  elseif p.set_of ~= p.settings then
    local _, policy, cooldown, sharers, bindfor, lease, hold = string.match(p.settings, settings_words)
    p.set_of, p.set = p.settings, {
      policy = policy ~= "-" and policy or nil, cooldown = tonumber(cooldown), sharers = tonumber(sharers),
      bindfor = tonumber(bindfor), lease = tonumber(lease), hold = tonumber(hold),
    }
  end
  return p.set
end

-- settings_own reads what a resource has of its own: cooldown, sharers and bindfor, nil where it is as
-- the pool.
local function settings_own(at, key, i)
  if not i.own then
    return nil, nil, nil
  end
  local cooldown, sharers, bindfor = string.match(redis.call("HGET", at.state, "s:" .. key) or "", settings_own_words)
  return tonumber(cooldown), tonumber(sharers), tonumber(bindfor)
end

-- settings_binds is how long a binding to a resource lasts (ms), 0 = forever.
local function settings_binds(at, st, key, i)
  local _, _, own = settings_own(at, key, i)
  return own or settings_of(st).bindfor or settings_bindfor
end

-- settings_list returns the words of such a text, also of a pattern.
local function settings_list(text)
  local parts = {}
  for word in string.gmatch(text, "[^ $]+") do
    parts[#parts + 1] = word
  end
  return parts
end

-- settings_merge puts words in the place of others: "." leaves a word as it is. It returns the text, and
-- whether a word is set.
local function settings_merge(text, words)
  local parts, some = settings_list(words), false
  for n, word in ipairs(settings_list(text)) do
    parts[n] = parts[n] == "." and word or parts[n]
    some = some or parts[n] ~= "-"
  end
  return table.concat(parts, " "), some
end

-- settings_fill returns the settings with what a process says in the place of unset words, and whether
-- it says another word than one that is set. How many may hold a resource only an Add fills: what is in the
-- pool already has a number.
local function settings_fill(text, opinions, adds)
  local parts, differs = settings_list(text), false
  for n, word in ipairs(settings_list(opinions)) do
    if n > 1 and string.sub(word, 1, 1) ~= "%" then
      differs = differs or parts[n] ~= "-" and parts[n] ~= word
      if parts[n] == "-" and (n ~= settings_sharers or adds) then
        parts[n], parts[1] = word, parts[1] == "-" and "p" or parts[1]
      end
    end
  end
  return table.concat(parts, " "), differs
end

-- settings_above returns whether a claim asks for more than a limit allows; 0 stands for no end, of
-- both.
local function settings_above(asks, limit)
  return limit > 0 and (asks == 0 or asks > limit)
end
