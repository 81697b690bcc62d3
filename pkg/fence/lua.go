package fence

import (
	"strings"

	"github.com/berth-go/berth/scripts"
)

// Lua is the text of the Lua function admit, and of one that it uses, for the
// beginning of a script of your own that checks and writes in one step:
//
//	local ok, greatest = admit(key, fence)
//
// The key is of a hash, and the fence is text as in ARGV, never a number: Lua
// would round it when it becomes text. If a greater fence is in the hash's field
// "fence", ok is false, greatest is that fence as text, and nothing is written.
// Otherwise the fence is put there and ok is true; greatest is then what was there
// before, "0" for nothing. A fence that is not a whole number above 0 is refused.
//
// The best hash is the one that holds the data: fence and data then live, expire
// and are lost together. Where the data is no hash, take [Redis.Key].
//
//	var pay = rueidis.NewLuaScript(fence.Lua() + `
//	if not admit(KEYS[1], ARGV[1]) then
//	  return 0
//	end
//	redis.call("HINCRBY", KEYS[1], "balance", ARGV[2])
//	return 1`)
//
// rueidis does not repeat such a script by itself. One that was not answered may
// have run: repeat it only if doing it twice is the same as doing it once, which
// the fence does not see to. The text has no #! line, and works on Redis, Valkey
// and the embedded server.
func Lua() string {
	var b strings.Builder
	for _, file := range []string{"fence/outdated.lua", "fence/admit.lua"} {
		text, err := scripts.FS.ReadFile(file)
		if err != nil {
			panic("berth: " + err.Error()) // the files are embedded: a test would have seen it
		}
		for line := range strings.Lines(string(text)) {
			if !strings.HasPrefix(line, "--- @include") {
				b.WriteString(line)
			}
		}
	}
	return b.String()
}
