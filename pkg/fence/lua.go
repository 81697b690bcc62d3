package fence

import (
	"strings"

	"github.com/berth-go/berth/scripts"
)

// Lua returns the source of the Lua function admit and its helper. Put the source at the
// beginning of your own script, which then checks and writes in one step:
//
//	local ok, greatest = admit(key, fence)
//
// The key must be that of a hash. The fence must be a text, as ARGV has it, since Lua would
// round a number. If the hash's field "fence" has a greater fence, ok is false, greatest is
// that fence as text, and nothing is written. Otherwise the field is set to the fence, ok is
// true, and greatest is the former fence, "0" for none. A fence that is not a whole number
// above 0 is refused.
//
// Use the hash that has the data, if there is one: fence and data then live, expire and are
// lost together. If the data is not a hash, use [Redis.Key].
//
//	var pay = rueidis.NewLuaScript(fence.Lua() + `
//	if not admit(KEYS[1], ARGV[1]) then
//	  return 0
//	end
//	redis.call("HINCRBY", KEYS[1], "balance", ARGV[2])
//	return 1`)
//
// rueidis does not repeat such a script by itself. A script without an answer may have run.
// Repeat the script only if two runs have the same effect as one; the fence does not ensure
// that. The source has no #! line, and works on Redis, Valkey and the embedded server.
func Lua() string {
	var b strings.Builder
	for line := range strings.Lines(scripts.Outdated + scripts.Admit) {
		if !strings.HasPrefix(line, "--- @include") {
			b.WriteString(line)
		}
	}
	return b.String()
}
