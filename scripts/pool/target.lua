--- @include "state/score"
--- @include "state/int"
--- @include "pool/item"
--- @include "pool/wants"
--- @include "pool/binding"
--- @include "pool/lane"
-- target_refuse refuses a claim on a resource that is not in the pool, once that has been filled. It also
-- reads what the claim wants, where it names something.
local function target_refuse(at, st, ask)
  if string.find(record_extra(ask.r.terms), wants_any) then
    return nil
  end
  local w = wants_read(ask.r.terms)
  ask.wants = w
  if w.resource and st.pool.filled and not (st.form and item_there(at, w.resource)) then
    return { "absent", st.used, st.waiting, 0, 0, st.pool.resources }
  elseif w.resource then
    ask.target, ask.apart = w.resource, lane_named .. lane_gap .. w.resource
  end
  ask.known = st.form
end

-- target_place looks up the resource that a bound claim waits for, if there is one: who was granted before in this
-- run may have bound the name.
local function target_place(at, ask)
  local w = ask.wants
  if w and not w.resource and w.bind ~= "" and w.patience > 0 and ask.known then
    local key = binding_of(at, w.bind)
    if key and item_there(at, key) then
      local ends = w.patience < score_forever and int(at.ms + w.patience) or "0"
      ask.target, ask.apart = key, ends .. lane_gap .. key
    end
  end
end
