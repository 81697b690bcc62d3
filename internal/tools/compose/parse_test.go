package compose

import (
	"context"
	"crypto/sha1"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/berth-go/berth/pkg/scriptkit"
	"github.com/berth-go/berth/scripts"
	"github.com/berth-go/berth/scripts/composed"
)

const okHeader = "--[[\nNAME: x.\nRETURNS {\"ok\"}\nREPLAY yes    COST O(1)\n]]\n"

// okScript is a script called name whose body begins with the given lines.
func okScript(name, body string) string {
	return strings.Replace(okHeader, "NAME", name, 1) + body + "\nreturn {\"ok\"}\n"
}

func TestParseGivesTheSameSourceForOtherLineEnds(t *testing.T) {
	t.Parallel()
	text := okScript("a", "--- @include \"lib/f\"\nlocal x = f [[\n]]")
	lib := "-- f.\nlocal function f() end\n"
	unix := MustParse(files("a.lua", text, "lib/f.lua", lib))
	dos := MustParse(files("a.lua", strings.ReplaceAll(text, "\n", "\r\n"), "lib/f.lua", strings.ReplaceAll(lib, "\n", "\r\n")))
	require.Equal(t, unix, dos)
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		files []string
		want  string
	}{
		{"no scripts", []string{"lib/f.lua", "-- f.\nlocal function f() end"}, "no *.lua at the root"},
		{"no header", []string{"a.lua", "return {\"ok\"}"}, "a.lua: the file does not begin with a header"},
		{"a line before the header", []string{"a.lua", "\n" + okScript("a", "")}, "a.lua: the file does not begin with a header"},
		{"a string without an end", []string{"a.lua", okScript("a", "x = 'y")}, "a.lua: line 6: a string has no end"},
		{"a missing include", []string{"a.lua", okScript("a", `--- @include "lib/f"`)}, `a.lua includes "lib/f.lua", which does not exist`},
		{"an include of a script", []string{"a.lua", okScript("a", `--- @include "b"`), "b.lua", okScript("b", "")}, `a.lua includes "b.lua", which is in no folder`},
		{
			"a circular include",
			[]string{
				"a.lua", okScript("a", `--- @include "lib/f"`),
				"lib/f.lua", "--- @include \"lib/g\"\nlocal function f() end",
				"lib/g.lua", "--- @include \"lib/f\"\nlocal function g() end",
			},
			"circular include: a.lua -> lib/f.lua -> lib/g.lua -> lib/f.lua",
		},
		{"an end too many", []string{"a.lua", okScript("a", "f() end")}, "a.lua: as it is sent: line 1: end closes nothing"},
		{"an include without quotes", []string{"a.lua", okScript("a", "--- @include lib/f")}, "a.lua: line 6: an include is written"},
		{"an include with two dashes", []string{"a.lua", okScript("a", `-- @include "lib/f"`)}, "a.lua: line 6: an include is written"},
		{"an include behind code", []string{"a.lua", okScript("a", `local x = 1 --- @include "lib/f"`)}, "a.lua: line 6: an include is written"},
		{"an include in a block", []string{"a.lua", okScript("a", "if x then\n--- @include \"lib/f\"\nend")}, "a.lua: line 7: an include must not stand in a block"},
		{"an include in a statement", []string{"a.lua", okScript("a", "for i = 1, 2\n--- @include \"lib/f\"\ndo end")}, "a.lua: line 7: an include must not stand in a block"},
		{"an include with something behind it", []string{"a.lua", okScript("a", `--- @include "lib/f" please`)}, "a.lua: line 6: an include is written"},
	} {
		_, err := Parse(files(tt.files...))
		require.ErrorContains(t, err, tt.want, tt.name)
	}
}

func TestParseNeedsAFolder(t *testing.T) {
	t.Parallel()
	_, err := Parse(os.DirFS(filepath.Join(t.TempDir(), "none")))
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestParseReportsAllFilesAtOnce(t *testing.T) {
	t.Parallel()
	_, err := Parse(files("a.lua", "return 1", "b.lua", okScript("b", "local x = KEYS[1]"), "lib/f.lua", "", "c.lua", "x = 'y"))
	require.EqualError(t, err, strings.Join([]string{
		"compose: c.lua: line 1: a string has no end",
		"compose: lib/f.lua: the file does not begin with a comment",
		"compose: a.lua: the file does not begin with a header, --[[ ... ]]",
		"compose: b.lua: the body uses KEYS[1], which the header does not declare",
	}, "\n"))
}

func TestParseReportsAFileOnceThatManyScriptsInclude(t *testing.T) {
	t.Parallel()
	const include = `--- @include "lib/f"`
	_, err := Parse(files("a.lua", okScript("a", include), "b.lua", okScript("b", include), "lib/f.lua", "-- f.\nf()"))
	require.EqualError(t, err, "compose: lib/f.lua: "+noDefinition(2, "f()"))
}

func TestAScriptIsReadyToRun(t *testing.T) {
	t.Parallel()
	header := "--[[\na: x.\nKEYS[1] k (SET of ids; STRING)\nARGV[1] lease (ms)  ARGV[2...] x2: claim, record (text)\nRETURNS {\"ok\", n}\nREPLAY yes  COST O(1)\n]]\n"
	all, err := Parse(files("b.lua", okScript("b", ""), "a.lua", header+"--- @include \"lib/f\"\nf(KEYS, ARGV) return {\"ok\", 1}",
		"lib/f.lua", "-- f.\nlocal function f() redis.call('get') end"))
	require.NoError(t, err)
	require.Len(t, all, 2)
	file := header + "local function f() redis.call('get') end\nf(KEYS, ARGV) return {\"ok\", 1}\n"
	sum := sha1.Sum([]byte(file[len(header):]))
	require.Equal(t, scriptkit.Script{
		Name: "a", SHA: hex.EncodeToString(sum[:]), File: &file, Header: len(header),
		Keys: []scriptkit.Key{{Name: "k", Type: "set", Also: "string"}}, Args: []string{"lease"}, Group: []string{"claim", "record"},
		Returns: []scriptkit.Return{{Status: "ok", Fields: []string{"n"}}}, Commands: []string{"GET"},
	}, all[0].Script)
	require.Equal(t, []string{"a.lua", "lib/f.lua"}, all[0].Of)
	require.Same(t, &all[1].Script, all.Library().Script("b"))
	require.Panics(t, func() { MustParse(files("a.lua", "")) })
}

// What is composed composes to itself, so that kept scripts can be read again.
func TestAComposedScriptComposesToItself(t *testing.T) {
	t.Parallel()
	all, err := Parse(scripts.FS)
	require.NoError(t, err)
	again := fstest.MapFS{}
	for _, s := range all {
		again[s.Name+".lua"] = &fstest.MapFile{Data: []byte(*s.File)}
	}
	twice, err := Parse(again)
	require.NoError(t, err)
	for i, s := range twice {
		require.Equal(t, all[i].Script, s.Script)
	}
}

// A hook is false where no kind defines it, and a name that is none is refused.
func TestHooks(t *testing.T) {
	t.Parallel()
	const include = "--- @include \"line/f\"\nf()"
	f := "-- f.\n%s\nlocal function f() if kind_heavy then return kind_heavy() end end"
	require.Equal(t, "local function f() if (false) then return (false)() end end\nf()\n", sent(t, include, "line/f.lua", fmt.Sprintf(f, "")))
	require.Equal(t, "local function f() if (1) then return (1)() end end\nf()\n", sent(t, include, "line/f.lua",
		fmt.Sprintf(f, "--- @include \"kind/a\""), "kind/a.lua", "-- a.\nlocal kind_heavy = 1"))
	for text, want := range map[string]string{
		"local kind_heavi = 1":                       "compose: a.lua: line/f.lua defines kind_heavi, which nothing asks of a kind: see scripts.Hooks",
		"local x = kind_heavi":                       "compose: a.lua: line/f.lua names kind_heavi, which no file defines: see scripts.Hooks",
		"local x = kind_next":                        "compose: a.lua: line/f.lua names kind_next, which no file defines: see scripts.Hooks",
		"local x = kind_heavy\nlocal kind_heavy = 1": "compose: a.lua: line/f.lua names kind_heavy before line/f.lua defines it",
	} {
		_, err := Parse(files("a.lua", okScript("a", "--- @include \"line/f\"\nf(x)"), "line/f.lua", "-- f.\n"+text+"\nlocal function f() return x end"))
		require.EqualError(t, err, want, text)
	}
}

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

// Another source of the kind has another hash; what no script of it includes does not count.
func TestAHashIsThatOfWhatIsComposed(t *testing.T) {
	t.Parallel()
	text := okScript("lock_hold", "")
	sources := files("lock_hold.lua", text, "line/none.lua", "-- none.\nlocal none = 1")
	all := MustParse(sources)
	written, err := all.Files(sources)
	require.NoError(t, err)
	before, err := all.Hash(sources)
	require.NoError(t, err)
	require.Contains(t, string(written["lock.go"]), before)
	sources["line/none.lua"].Data = []byte("-- other.\nlocal none = 2")
	after, err := all.Hash(sources)
	require.NoError(t, err)
	require.Equal(t, before, after)
	sources["lock_hold.lua"].Data = []byte(text + "-- why\n")
	after, err = all.Hash(sources)
	require.NoError(t, err)
	require.NotEqual(t, before, after)
	delete(sources, "lock_hold.lua")
	_, err = all.Hash(sources)
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// files makes a file system of path, text pairs.
func files(pairs ...string) fstest.MapFS {
	fsys := fstest.MapFS{}
	for i := 0; i < len(pairs); i += 2 {
		fsys[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1])}
	}
	return fsys
}

// embedded returns a client of a fresh embedded server.
func embedded(t testing.TB) rueidis.Client {
	t.Helper()
	m := miniredis.NewMiniRedis()
	t.Cleanup(m.Close)
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{"embedded"}, ForceSingleClient: true, DisableCache: true, AlwaysRESP2: true, ClientSetInfo: rueidis.DisableClientSetInfo,
		DialCtxFn: func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) { return m.Dial() },
	})
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return client
}
