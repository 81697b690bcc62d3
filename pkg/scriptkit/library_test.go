package scriptkit

import (
	"crypto/sha1"
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const okHeader = "--[[\nNAME: x.\nRETURNS {\"ok\"}\nREPLAY yes    COST O(1)\n]]\n"

// okScript is a script called name whose body begins with the given lines.
func okScript(name, body string) string {
	return strings.Replace(okHeader, "NAME", name, 1) + body + "\nreturn {\"ok\"}\n"
}

func TestParseComposesIncludesDepthFirstAndOnce(t *testing.T) {
	t.Parallel()
	l, err := Parse(files(
		"a.lua", okScript("a", "--- @include \"lib/two\"\n--- @include \"lib/three\"\n-- why\nlocal x = two() or three()"),
		"lib/one.lua", "-- one.\nlocal function one() end\n",
		"lib/two.lua", "--- @include \"lib/one\"\n-- two.\nlocal function two() one() end\n",
		"lib/three.lua", "--- @include \"lib/one\"\n-- three.\nlocal function three() one() end\n",
	))
	require.NoError(t, err)
	s := l.Script("a")
	require.Equal(t, strings.Join([]string{
		"local function one() end",
		"local function two() one() end",
		"local function three() one() end",
		"local x = two() or three()",
		`return {"ok"}`,
		"",
	}, "\n"), s.Source)
	sum := sha1.Sum([]byte(s.Source))
	require.Equal(t, hex.EncodeToString(sum[:]), s.SHA)
}

// What stands behind a return is not even defined where the script ends there.
func TestParseLeavesAnIncludeWhereItStands(t *testing.T) {
	t.Parallel()
	l, err := Parse(files(
		"a.lua", okScript("a", "--- @include \"lib/one\"\nif one() then return {\"ok\"} end\n--- @include \"lib/two\"\ntwo()"),
		"lib/one.lua", "-- one.\nlocal function one() end\n",
		"lib/two.lua", "--- @include \"lib/one\"\n-- two.\nlocal function two() one() end\n",
	))
	require.NoError(t, err)
	require.Equal(t, strings.Join([]string{
		"local function one() end",
		`if one() then return {"ok"} end`,
		"local function two() one() end",
		"two()",
		`return {"ok"}`,
		"",
	}, "\n"), l.Script("a").Source)
}

func TestParseGivesTheSameSourceForOtherLineEnds(t *testing.T) {
	t.Parallel()
	text := okScript("a", "--- @include \"lib/f\"\nlocal x = f [[\n]]")
	lib := "-- f.\nlocal function f() end\n"
	unix := MustParse(files("a.lua", text, "lib/f.lua", lib))
	dos := MustParse(files("a.lua", strings.ReplaceAll(text, "\n", "\r\n"), "lib/f.lua", strings.ReplaceAll(lib, "\n", "\r\n")))
	require.Equal(t, unix.Script("a"), dos.Script("a"))
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct {
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
		{"an include without quotes", []string{"a.lua", okScript("a", "--- @include lib/f")}, "a.lua: line 6: an include is written"},
		{"an include with two dashes", []string{"a.lua", okScript("a", `-- @include "lib/f"`)}, "a.lua: line 6: an include is written"},
		{"an include behind code", []string{"a.lua", okScript("a", `local x = 1 --- @include "lib/f"`)}, "a.lua: line 6: an include is written"},
		{"an include in a block", []string{"a.lua", okScript("a", "if x then\n--- @include \"lib/f\"\nend")}, "a.lua: line 7: an include must not stand in a block"},
		{"an include in a statement", []string{"a.lua", okScript("a", "for i = 1, 2\n--- @include \"lib/f\"\ndo end")}, "a.lua: line 7: an include must not stand in a block"},
		{"an include with something behind it", []string{"a.lua", okScript("a", `--- @include "lib/f" please`)}, "a.lua: line 6: an include is written"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := Parse(files(tt.files...))
			require.ErrorContains(t, err, tt.want)
		})
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
		"scriptkit: c.lua: line 1: a string has no end",
		"scriptkit: lib/f.lua: the file does not begin with a comment",
		"scriptkit: a.lua: the file does not begin with a header, --[[ ... ]]",
		"scriptkit: b.lua: the body uses KEYS[1], which the header does not declare",
	}, "\n"))
}

func TestParseReportsAFileOnceThatManyScriptsInclude(t *testing.T) {
	t.Parallel()
	const include = `--- @include "lib/f"`
	_, err := Parse(files("a.lua", okScript("a", include), "b.lua", okScript("b", include), "lib/f.lua", "-- f.\nf()"))
	require.EqualError(t, err, "scriptkit: lib/f.lua: "+noDefinition(2, "f()"))
}

func TestLibrary(t *testing.T) {
	t.Parallel()
	l := MustParse(files("b.lua", okScript("b", ""), "a.lua", okScript("a", ""), "a_b.lua", okScript("a_b", "")))
	var names []string
	for _, s := range l.Scripts() {
		names = append(names, s.Name)
		require.Same(t, s, l.Script(s.Name))
	}
	require.Equal(t, []string{"a", "a_b", "b"}, names)
	require.PanicsWithValue(t, `scriptkit: no script "c"`, func() { l.Script("c") })
	require.Panics(t, func() { MustParse(files("a.lua", "")) })
}

func TestALazyLibraryLooksAtAScriptWhenItIsAskedFor(t *testing.T) {
	t.Parallel()
	all := files(
		"a.lua", okScript("a", "--- @include \"lib/f\"\nf()"), "lib/f.lua", "-- f.\nlocal function f() end\n",
		"b.lua", "return 1",
		"c.lua", okScript("c", `--- @include "lib/g"`),
		"d.lua", okScript("d", `--- @include "lib/bad"`), "lib/bad.lua", "x = 'y",
		"e.lua", "x = 'y",
		"f.lua", okScript("f", `--- @include "state/f"`), "state/f.lua", "f()",
		"g.lua", okScript("g", `--- @include "lib/f"`),
		"h.lua", okScript("h", "--- @include \"lib/h\"\nh()"), "lib/h.lua", "--- @include \"lib/f\"\nlocal function h() end\n",
		"i.lua", okScript("i", "--- @include \"lib/h\"\nh()"),
	)
	l := Lazy(all)
	first := l.Script("a")
	require.Equal(t, MustParse(files("a.lua", okScript("a", "--- @include \"lib/f\"\nf()"), "lib/f.lua", "-- f.\nlocal function f() end\n")).Script("a"), first)
	require.Same(t, first, l.Script("a"))
	require.PanicsWithValue(t, `scriptkit: no script "x"`, func() { l.Script("x") })
	for name, want := range map[string]string{
		"b": "scriptkit: b.lua: the file does not begin with a header, --[[ ... ]]",
		"c": `scriptkit: c.lua: c.lua includes "lib/g.lua", which does not exist`,
		"d": "scriptkit: d.lua: scriptkit: lib/bad.lua: line 1: a string has no end",
		"e": "scriptkit: e.lua: line 1: a string has no end",
		"f": "scriptkit: f.lua: scriptkit: state/f.lua: " + noDefinition(1, "f()"),
		"g": `scriptkit: g.lua: g.lua includes "lib/f.lua" and uses nothing of it`,
		"h": `scriptkit: h.lua: lib/h.lua includes "lib/f.lua" and uses nothing of it`,
		"i": `scriptkit: i.lua: lib/h.lua includes "lib/f.lua" and uses nothing of it`,
	} {
		require.PanicsWithError(t, want, func() { l.Script(name) })
	}
	require.Panics(t, func() { l.Scripts() })
	require.Panics(t, func() { Lazy(files("lib/f.lua", "")) })
}
