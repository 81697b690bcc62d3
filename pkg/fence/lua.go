package fence

import (
	"strings"

	"github.com/berth-go/berth/scripts"
)

// Lua returns the text of the Lua function admit, and of a function that admit uses.
// Put it at the beginning of your own script, which then checks and writes in one step:
//
//	local ok, greatest = admit(key, fence)
//
// The key is of a hash. The fence is text as in ARGV, never a number: Lua would round
// the number when it becomes text. If the hash's field "fence" has a greater fence, ok
// is false, greatest is that fence as text, and nothing is written. Otherwise the fence
// is put there, ok is true, and greatest is the former fence, "0" for none. A fence
// that is not a whole number above 0 is refused.
//
// The best hash is the one that holds the data: fence and data then live, expire and
// are lost together. If the data is no hash, take [Redis.Key].
//
//	var pay = rueidis.NewLuaScript(fence.Lua() + `
//	if not admit(KEYS[1], ARGV[1]) then
//	  return 0
//	end
//	redis.call("HINCRBY", KEYS[1], "balance", ARGV[2])
//	return 1`)
//
// rueidis does not repeat such a script by itself. A script that was not answered may
// have run. Repeat it only if two runs have the effect of one; the fence does not see
// to that. The text has no #! line, and works on Redis, Valkey and the embedded server.
func Lua() string {
	var b strings.Builder
	for line := range strings.Lines(scripts.Outdated + scripts.Admit) {
		if !strings.HasPrefix(line, "--- @include") {
			b.WriteString(line)
		}
	}
	return b.String()
}
