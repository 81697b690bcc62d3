-- luacheck sees the scripts as Redis gets them: composed, one file each.
std = "lua51"
read_globals = { "redis", "KEYS", "ARGV", "cjson" }
max_line_length = 120
