package scriptkit

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// files makes a file system of path, text pairs.
func files(pairs ...string) fstest.MapFS {
	fsys := fstest.MapFS{}
	for i := 0; i < len(pairs); i += 2 {
		fsys[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1])}
	}
	return fsys
}

// script parses one script with the given header lines and body.
func script(t testing.TB, header, body string) *Script {
	t.Helper()
	l, err := Parse(files("s.lua", "--[[\ns: test.\n"+header+"\nREPLAY yes    COST O(1)\n]]\n"+body))
	require.NoError(t, err)
	return l.Script("s")
}
