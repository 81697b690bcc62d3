-- texts_of reads a field of a hash for each argument of the call from an index on: the argument behind a prefix. A
-- field that is not there is false.
local function texts_of(hash, prefix, from)
  local fields = {}
  for n = from, #ARGV do
    fields[n - from + 1] = prefix .. ARGV[n]
  end
  return fields[1] and redis.call("HMGET", hash, unpack(fields)) or fields
end
