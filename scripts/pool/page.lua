-- page_of returns a page of the list of free resources, up to most of them, and the one behind the page,
-- "" at the end. By the way n it goes from the head to the tail, by p back. The page begins at the
-- resource from, or anew: where from is "", and where it does not stand behind before any more. Then
-- it was taken meanwhile, and may have come back since, in another place.
local function page_of(at, way, from, before, most)
  local page, key = {}, from
  if from == "" or redis.call("HGET", at.free, way .. before) ~= from then
    key = redis.call("HGET", at.free, way) or ""
  end
  while key ~= "" and #page < most do
    page[#page + 1] = key
    key = redis.call("HGET", at.free, way .. key) or ""
  end
  return page, key
end
