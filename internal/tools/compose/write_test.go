package compose

import (
	"go/format"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/scripts"
	"github.com/berth-go/berth/scripts/composed"
)

const stale = "scripts/composed is stale: run `make docs`"

// This test says within a second what `make check-docs` says.
func TestTheComposedScriptsAreThoseOfTheSources(t *testing.T) {
	t.Parallel()
	all, err := Parse(scripts.FS)
	require.NoError(t, err)
	tree := os.DirFS("../../../scripts/composed")
	for kind, some := range all.Kinds() {
		hash, err := some.Hash(scripts.FS)
		require.NoError(t, err)
		text, err := fs.ReadFile(tree, kind+".go")
		require.NoError(t, err, stale)
		require.True(t, strings.HasPrefix(string(text), marked+hashLine(hash)), stale)
	}
	require.Equal(t, all.Library().Scripts(), composed.Library().Scripts(), stale)
}

func TestWhatIsWrittenOfAScript(t *testing.T) {
	t.Parallel()
	const text = "--[[\nlock_hold: hold it.\nKEYS[1] a (SET)  KEYS[2] b (HASH x; STRING)\nARGV[1] x  ARGV[2...] x2: p, q\n" +
		"RETURNS {\"ok\", n, ...} | {\"no\"}\nREPLAY yes  COST O(1)\n]]\n"
	const body = "redis.call('GET', unpack(KEYS)) f(ARGV) return n and {'ok', n} or {'no'}\n"
	sources := files("lock_hold.lua", text+body, "line/none.lua", "-- none.\nlocal none = 1")
	all, err := Parse(sources)
	require.NoError(t, err)
	written, err := all.Files(sources)
	require.NoError(t, err)
	require.Len(t, written, 3)
	require.Equal(t, text+body, string(written["lock/lock_hold.lua"]))
	require.Contains(t, string(written["library.go"]), "return scriptkit.NewLibrary(\n\t\tLockHold,\n\t)")
	want := "\n//go:embed lock/lock_hold.lua\nvar lockHold string\n\n// LockHold: hold it.\nvar LockHold = &scriptkit.Script{\n" +
		"\tName: \"lock_hold\",\n\tSHA: \"" + all[0].SHA + "\",\n\tFile: &lockHold,\n\tHeader: 157,\n" +
		"\tKeys: []scriptkit.Key{\n\t\t{Name: \"a\", Type: \"set\"},\n\t\t{Name: \"b\", Type: \"hash\", Also: \"string\"},\n\t},\n" +
		"\tArgs: []string{\"x\"},\n\tGroup: []string{\"p\", \"q\"},\n\tCommands: []string{\"GET\"},\n" +
		"\tReturns: []scriptkit.Return{\n\t\t{Status: \"ok\", Fields: []string{\"n\"}, Repeats: true},\n\t\t{Status: \"no\"},\n\t},\n}\n"
	formatted, err := format.Source([]byte(want))
	require.NoError(t, err)
	require.Contains(t, string(written["lock.go"]), string(formatted))

	// Another source of the kind has another hash; what no script of it includes does not count.
	before, err := all.Hash(sources)
	require.NoError(t, err)
	require.Contains(t, string(written["lock.go"]), before)
	sources["line/none.lua"].Data = []byte("-- other.\nlocal none = 2")
	after, err := all.Hash(sources)
	require.NoError(t, err)
	require.Equal(t, before, after)
	sources["lock_hold.lua"].Data = []byte(text + "-- why\n" + body)
	after, err = all.Hash(sources)
	require.NoError(t, err)
	require.NotEqual(t, before, after)
	delete(sources, "lock_hold.lua")
	_, err = all.Hash(sources)
	require.ErrorIs(t, err, fs.ErrNotExist)
}
