--- @include "state/int"
--- @include "pool/item"
--- @include "pool/binding"
-- plain_item reads an item: what stands before its count, how many may hold it,
-- how many do, and those. It returns nil unless that is all there is to say, and
-- it has not expired.
local function plain_item(text, now)
  local head, max, expiry, rev, count, claims = string.match(text or "", item_plain)
  if not head or #max > 13 or #expiry > 13 or #rev > 13 or expiry ~= "0" and expiry - now <= 0 then
    return nil
  end
  if claims ~= "" or count ~= "0" then
    local first, other, known = string.find(claims, item_gap, 1, true), "", 1
    if first ~= #claims or first == 1 then -- it is not the only one
      other, known = string.gsub(claims, item_claim, "")
    end
    if other ~= "" or known ~= count + 0 then
      return nil
    end
  end
  return head, max, count, claims
end

-- plain_pick is what a claim takes: what its name is bound to, and when that ends, else what comes first by the policy.
local function plain_pick(at, free, bind, policy)
  local key, ends
  if at then
    key, ends = binding_of(at, bind)
  end
  if not key then
    local rank = policy == "m" and "-2" or "0"
    key = redis.call("ZRANGE", free, rank, rank)[1]
  end
  return key, ends
end

-- plain_take is the item of a resource once a claim has taken it too, how many more may, and how many have it; nil if
-- that is not all that there is to say.
local function plain_take(text, claim, now)
  if text and string.sub(text, 1, item_alone_end) == item_alone and string.sub(text, item_rev_end + 1) == item_free then
    return string.sub(text, 1, item_rev_end) .. item_held .. claim .. item_gap, 0, "0"
  end
  local head, most, count, claims = plain_item(text, now)
  local left = head and most - count - 1
  if not head or left < 0 then
    return nil
  end
  return head .. int(count + 1) .. item_gap .. claims .. claim .. item_gap, left, count
end

-- plain_give is the item once a claim has given the resource back, how many had it, how many may, and whether only
-- this one might; nil if that is not all that there is to say. What was shared, by no claim, stays as it is.
local function plain_give(text, claim, now)
  if not claim then
    return (plain_item(text, now))
  end
  local mine = claim .. item_gap
  if text and string.sub(text, 1, item_alone_end) == item_alone
    and string.sub(text, item_rev_end + 1) == item_held .. mine then
    return string.sub(text, 1, item_rev_end) .. item_free, "1", "1", true
  end
  local head, most, count, claims = plain_item(text, now)
  local from = head and string.find(item_gap .. claims, item_gap .. mine, 1, true)
  if not from then
    return nil
  end
  local others = string.sub(claims, 1, from - 1) .. string.sub(claims, from + #mine)
  return head .. int(count - 1) .. item_gap .. others, count, most, most == "1" and others == ""
end
