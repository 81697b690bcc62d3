-- How a claim asks for a lock is one text, empty for one that stands by its ticket and is its own
-- owner: words, and the owner behind them, any bytes
--   conflict  fail, wait, work or extend: where the owner holds the lock already
--   access    queued, random or lifo
--   draw      of a random one, 0 up to 2^32
local owner_asks = "^(%a+) (%a+) (%d+) (.*)$"

-- owner_ask adds to what is asked what the text says.
local function owner_ask(text, ask)
  local conflict, access, draw, owner = string.match(text, owner_asks)
  ask.conflict, ask.access, ask.draw = conflict, access or "queued", tonumber(draw or 0)
  ask.owner = owner ~= "" and owner or nil
  return ask
end
