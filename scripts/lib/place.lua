-- place is where a ticket of a priority stands: the higher priority first,
-- then the lower ticket.
local function place(priority, ticket)
  return (127 - tonumber(priority)) * 17592186044416 + ticket
end
