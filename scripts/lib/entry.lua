-- entry finds a claim among the entries of a group, nil where it is none.
local function entry(s, claim)
  for i, e in ipairs(s and s.entries or {}) do
    if e.claim == claim then
      return e, i
    end
  end
  return nil
end
