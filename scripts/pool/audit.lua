--- @include "state/score"
--- @include "state/record"
--- @include "line/place"
--- @include "pool/item"
--- @include "pool/lane"
-- What pool_inspect checks of lanes. get reads a field of a Redis key, score the score of a member of
-- the line; problem takes a word and what it is about.

-- audit_lane checks the lane that the state has of a resource, by its number. One that a run has left
-- for the next one to look at, because it stopped at its bound, may wait for what is free.
local function audit_lane(at, key, number, score, problem)
  local i, bad = item_read(at, key)
  local mark = score("w:" .. key)
  local left_over, there = mark and mark <= score_moment + at.ms, i and not i.leaving
  if not lane_first(at, key, number) then
    problem("lane_empty", key)
  elseif left_over or bad then
    return
  elseif there and i.listed then
    problem("lane_free", key)
  elseif there then
    if (mark or score_moment) ~= score_moment + (item_moment(i) or 0) then
      problem("lane_mark", key)
    end
  elseif not mark then
    problem("lane_absent", key)
  end
end

-- audit_member checks that a claim which waits for one resource stands in its lane.
local function audit_member(at, claim, text, get, score, problem)
  local ends, key = string.match(text, lane_member)
  local known = get(at.state, "c:" .. claim)
  local r, number = known and record_read(known), key and get(at.state, "l:" .. key)
  local patience = ends and ends ~= lane_named and ends ~= "0" and score_patience + ends or nil
  if not r or r.phase ~= "w" or #r.place ~= lane_width or not number
    or score(r.place .. place_mark .. claim) ~= number + 0 or score("p:" .. claim) ~= patience then
    problem("lane_member", claim)
  end
end
