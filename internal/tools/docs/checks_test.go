package main

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// requireProblem fails unless an error says what is wanted, "" for no error, and reports whether there is one.
func requireProblem(t *testing.T, want string, err error, name string) (problem bool) {
	t.Helper()
	if want == "" {
		require.NoError(t, err, name)
		return false
	}
	require.ErrorContains(t, err, want, name)
	return true
}

func TestLinks(t *testing.T) {
	t.Parallel()
	tree := fstest.MapFS{
		"docs/b.md":      {Data: []byte("# The `B` side: why?\n\n## Same\n\n## Same\n\n<a id=\"deep\"></a>\n\n```\n# not a heading\n```\n")},
		"cmd/x/main.go":  {},
		".cache/skip.md": {Data: []byte("[x](gone.md)")},
	}
	for _, test := range []struct{ name, text, problem string }{
		{"a file", "[b](docs/b.md)", ""},
		{"a folder", "[x](cmd/x)", ""},
		{"a heading", "[b](docs/b.md#the-b-side-why)", ""},
		{"a repeated heading", "[b](docs/b.md#same-1)", ""},
		{"an anchor", "[b](docs/b.md#deep)", ""},
		{"its own heading", "# Here\n[up](#here)", ""},
		{"a title", `[b](docs/b.md "the title")`, ""},
		{"an image", "![b](docs/gone.png)", "no such file"},
		{"the web", "[x](https://example.com/gone.md) <mailto:a@example.com>", ""},
		{"in a code block", "```\n[b](gone.md)\n```", ""},
		{"in code", "`[b](gone.md)`", ""},
		{"in a comment", "<!-- [b](gone.md) -->", ""},
		{"a missing file", "[b](docs/gone.md)", "no such file"},
		{"a missing heading", "[b](docs/b.md#gone)", "no heading #gone in docs/b.md"},
		{"a heading in code", "[b](docs/b.md#not-a-heading)", "no heading"},
		{"a reference", "[b][1]\n\n[1]: docs/gone.md\n", "no such file"},
		{"a way out", "[b](../b.md)", "leads out of the repository"},
	} {
		tree["README.md"] = &fstest.MapFile{Data: []byte(test.text)}
		if err := checkLinks(tree); requireProblem(t, test.problem, err, test.name) {
			require.True(t, strings.HasPrefix(err.Error(), "README.md: the link to "), err)
		}
	}
}

func TestTheDocsHaveSoManyWords(t *testing.T) {
	t.Parallel()
	tree := fstest.MapFS{
		"README.md":              {Data: []byte("# One\n\ntwo three\n")},
		"CHANGELOG.md":           {Data: []byte("not counted")},
		"docs/a.md":              {Data: []byte("| four | 5 |\n```\nsix\n```\n")},
		"docs/a.svg":             {Data: []byte("not counted")},
		"docs/more/b.md":         {Data: []byte("seven")},
		"docs/generated/keys.md": {Data: []byte("not counted")},
	}
	require.NoError(t, checkLength(tree, 13))
	require.EqualError(t, checkLength(tree, 12),
		"13 words are written by hand, at most 12 are read: docs/a.md 8, README.md 4, docs/more/b.md 1, CONTRIBUTING.md 0, test/README.md 0")
	require.NoError(t, checkLength(fstest.MapFS{}, 0))
}

func TestTheReadmeIsShortAndBeginsWithTheProgramThatIsBuilt(t *testing.T) {
	t.Parallel()
	const program = "package main\n\nfunc main() {}\n"
	for text, want := range map[string]string{
		"# Berth\n\n```go\n" + program + "```\n":                               "",
		"# Berth\n\n```go\npackage main\n```\n":                                "README.md does not begin with the program of " + first,
		"```go\n" + program + "```\n" + strings.Repeat("word ", readmeWords-7): "",
		"```go\n" + program + "```\n" + strings.Repeat("word ", readmeWords-6): "README.md has 1201 words, more than 1200",
	} {
		tree := fstest.MapFS{"README.md": {Data: []byte(text)}, first: {Data: []byte("// First.\n" + program)}}
		if err := checkReadme(tree); requireProblem(t, want, err, text) {
			require.EqualError(t, err, want)
		}
	}
}

const wordsDocument = "# Design\n\n| quay | of another section |\n\n## Words\n\n| word | meaning |\n|---|---|\n" +
	"| name, hand-off | what is contended for; the next one gets it |\n" +
	"| version (of a tide) | a number |\n| thin, `stem` | two |\n\n## Packages\n\n| seat | of another section |\n"

func TestAWordThatNobodyExplains(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, file, text, problem string }{
		{"a script of known words", "scripts/thin_acquire.lua", "", ""},
		{"many of a word", "scripts/claim/names.lua", "", "scripts/claim/names.lua: the word claim "},
		{"a fragment", "scripts/line/handoff.lua", "", "scripts/line/handoff.lua: the word line "},
		{"a word of an entry", "scripts/thin_seat.lua", "", "scripts/thin_seat.lua: the word seat "},
		{"the folder of a fragment", "scripts/tide/acquire.lua", "", "scripts/tide/acquire.lua: the word tide "},
		{"a word of another section", "scripts/quay.lua", "", "scripts/quay.lua: the word quay "},
		{"a package of a known word", "internal/anything/a.go", "package thin\n", ""},
		{"a package", "internal/thin/a.go", "package tide\n", "package tide: the word tide "},
		{"a command", "internal/tide/a.go", "package main\n", ""},
	} {
		err := checkWords(fstest.MapFS{
			"docs/a.md": {Data: []byte(wordsDocument)}, test.file: {Data: []byte(test.text)},
		}, "docs/a.md")
		if requireProblem(t, test.problem, err, test.name) {
			require.Equal(t, 1, strings.Count(err.Error(), "the word "), "%v", err)
		}
	}
}

// A plain term that no name needs, or that the glossary explains, leaves the list.
func TestEachPlainTermIsNeeded(t *testing.T) {
	t.Parallel()
	tree := os.DirFS("../../..")
	used, err := namingWords(tree)
	require.NoError(t, err)
	text, err := os.ReadFile("../../../docs/architecture.md")
	require.NoError(t, err)
	known := glossary(string(text))
	var idle []string
	for term := range plainTerms {
		if known[term] || used[term] == "" && used[term+"s"] == "" {
			idle = append(idle, term)
		}
	}
	require.Empty(t, idle, "no name has them, or the glossary explains them")
}

var source = fstest.MapFS{
	"pkg/sem/sem.go": {Data: []byte(`package sem

import "example.com/internal/engine"

const Max, Min = 2, 1

type (
	Client struct{ Config Config }
	Config struct{ Lease int }
	Permit struct{ *engine.Hold[int] }
	Handle interface{ Release() }
	Token = engine.Token
)

func New() *Client { return nil }

func (c *Client) Stats() {}

func (p *Permit) Weight() int { return 0 }
`)},
	"internal/engine/engine.go": {Data: []byte(`package engine

type Hold[T any] struct{ base }

type base struct{}

func (*base) Renew() {}

type Token struct{ ID string }
`)},
	"pkg/sem/sem_test.go":  {Data: []byte("package sem\n\nfunc TestIt(t *testing.T) {}\n\nfunc helper() {}\n")},
	"test/x/deep_test.go":  {Data: []byte("package x_test\n\nfunc TestDeep(t *testing.T) {}\n")},
	"cmd/berth/main.go":    {Data: []byte("package main\n\nfunc Main() {}\n")},
	"bin/generated/bad.go": {Data: []byte("no Go")},
}

func TestNames(t *testing.T) {
	t.Parallel()
	names, err := readNames(source)
	require.NoError(t, err)
	for name, problem := range map[string]string{
		"sem.New":            "",
		"sem.Min":            "",
		"sem.Config.Lease":   "",
		"sem.Client.Stats":   "",
		"sem.Permit.Weight":  "",
		"sem.Permit.Hold":    "",
		"sem.Permit.Renew":   "", // by way of two embedded types
		"sem.Handle.Release": "",
		"sem.Token.ID":       "", // by way of an alias
		"Client":             "",
		"Client.Stats":       "",
		"TestIt":             "",
		"TestDeep":           "",
		"sem.TestIt":         "",
		"context.Cause":      "",

		"sem.Old":           "there is no sem.Old",
		"sem.Config.TTL":    "there is no sem.Config.TTL",
		"sem.New.Lease":     "there is no sem.New.Lease",
		"sem.Permit.Renews": "there is no sem.Permit.Renews",
		"Lock":              "there is no Lock in any package",
		"Client.Old":        "there is no Client.Old in any package",
		"Main":              "there is no Main in any package",
		"lock.New":          "there is no package lock for lock.New",
		"TestGone":          "there is no test TestGone",
	} {
		if err := names.lookUp(name); requireProblem(t, problem, err, name) {
			require.EqualError(t, err, problem, name)
		}
	}
}

func TestTheThirdColumnIsRead(t *testing.T) {
	t.Parallel()
	for line, want := range map[string][]string{
		"| a | b | `sem.New(ctx, x)`, `TestIt/sub case` |":     {"sem.New", "TestIt"},
		"| `A` | `B` | `*sem.Permit`; `sem.Pool[int].Get()` |": {"sem.Permit", "sem.Pool.Get"},
		"| a \\| b | c | `sem.X` |":                            {"sem.X"},
		"| a | b | `berth run --sem NAME`, `make test`, `x` |": nil,
		"| a | `sem.New` |":                                    nil,
		"`sem.New`":                                            nil,
	} {
		require.Equal(t, want, thirdColumn(line), line)
	}
}

func TestParityTellsTheLine(t *testing.T) {
	t.Parallel()
	tree := fstest.MapFS{"p.md": {Data: []byte("# P\n\n| a | b | c |\n|---|---|---|\n| x | y | `sem.Gone` |\n")}}
	for name, file := range source {
		tree[name] = file
	}
	require.EqualError(t, checkParity(tree, "p.md"), "p.md:5: there is no sem.Gone")
	require.NoError(t, checkParity(tree, "missing.md"))
}
