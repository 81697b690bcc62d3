-- load reads the state of a name and, with a claim given, that claim's record
-- and one more field (false where there is none). A name that was never used
-- reads as all zero. What save has to compare stays in at.
local function load(at, claim, field)
  local v = redis.call("HMGET", at.state, "fmt", "cap", "used", "waiting", "ticket", "fence", "exp",
    "gone", "forever", "keep", "c:" .. (claim or ""), field or "c:")
  local st = {
    fmt = v[1] and tonumber(v[1]) or 0,
    cap = v[2] and tonumber(v[2]) or 0,
    used = v[3] and tonumber(v[3]) or 0,
    waiting = v[4] and tonumber(v[4]) or 0,
    ticket = v[5] and tonumber(v[5]) or 0,
    fence = v[6] and tonumber(v[6]) or 0,
    exp = v[7] and tonumber(v[7]) or 0,
    gone = v[8] and tonumber(v[8]) or 0,
    forever = v[9] and tonumber(v[9]) or 0,
    keep = v[10] and tonumber(v[10]) or 0,
  }
  at.cap, at.exp, at.gone, at.forever, at.keep = st.cap, st.exp, st.gone, st.forever, st.keep
  return st, v[11], v[12]
end
