--- @include "state/score"
--- @include "state/int"
--- @include "state/record"
--- @include "state/thin"
--- @include "owner/group"
-- live_group reads the live entries of the owner that holds a lock, the outermost first, each
-- with its record, and what they have in common: once in a run. It returns nil where nobody
-- holds the lock. Without a stored group there is one entry. left and r are an entry that this run
-- has taken out, and its record with its deadline.
local function live_group(at, st, left, r)
  if st.group then
    return st.group
  end
  local s = st.group_text and group_read(st.group_text, st.fence)
  if not s then
    local sole = left or st.thin and "h:" .. st.thin.claim
      or redis.call("ZRANGEBYSCORE", at.line, "(" .. int(score_hold + at.ms), int(score_hold + score_forever),
        "LIMIT", "0", "1")[1]
    if not sole then
      return nil
    end
    s = group_new(left or string.sub(sole, 3))
  end
  local members, fields, live, unheard = {}, {}, {}, {}
  for i, e in ipairs(s.entries) do
    members[i], fields[i] = "h:" .. e.claim, "c:" .. e.claim
  end
  local scores, texts = {}, st.thin and { thin_record(st).text }
  if not texts then
    scores = redis.call("ZMSCORE", at.line, unpack(members))
    texts = redis.call("HMGET", at.state, unpack(fields))
  end
  for i, e in ipairs(s.entries) do
    e.r = e.claim == left and r or texts[i] and record_read(texts[i]) or nil
    if e.r and e.claim ~= left then
      e.r.held, e.r.changed = st.thin and st.thin.held or scores[i] and tonumber(scores[i]) - score_hold, false
    end
    if e.r and e.r.held and e.r.held > at.ms then
      local list = e.fresh and unheard or live
      list[#list + 1] = e
    end
  end
  for _, e in ipairs(unheard) do
    live[#live + 1] = e -- the others renew before one that has not called yet
  end
  s.entries = live
  if not live[1] then
    return nil
  end
  s.own, s.deadline = s.own or live[1].r.held, s.deadline or live[1].r.held
  st.group = s
  return s
end

-- find_entry finds a claim among the entries of a group, nil where it is none.
local function find_entry(s, claim)
  for i, e in ipairs(s and s.entries or {}) do
    if e.claim == claim then
      return e, i
    end
  end
  return nil
end
