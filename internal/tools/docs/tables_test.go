package main

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/observe"
)

// This test says in a second what `make check-docs` says, and so what each page is made of.
func TestTheDocsAreTrue(t *testing.T) {
	t.Parallel()
	require.NoError(t, run("../../..", true), "run `make docs`")
}

func TestEveryKindIsListedNamedAndDocumented(t *testing.T) {
	t.Parallel()
	kinds, err := eventKinds(os.DirFS("../../.."))
	require.NoError(t, err)
	event := reflect.TypeFor[observe.Event]()
	var declared []observe.Kind
	for _, k := range kinds {
		declared = append(declared, observe.Kind(k.kind))
		require.Equal(t, strings.ReplaceAll(hyphens(k.constant), "-", "_"), k.kind)
		require.Equal(t, strings.ToLower(observe.Kind(k.kind).Level().String()), k.level, "level of %s", k.constant)
		for field := range strings.SplitSeq(k.fields, ", ") {
			_, ok := event.FieldByName(field)
			require.True(t, ok, "%s fills %q, which Event does not have", k.constant, field)
		}
	}
	require.Equal(t, observe.Kinds(), declared)
}

func TestAKindThatIsNotDescribedIsNamed(t *testing.T) {
	t.Parallel()
	block := "const (\n\t// Lost: a lease ended.\n\t// Fills: Fence. Level: warn.\n\tLost Kind = \"lost\"\n)\n"
	for problem, kinds := range map[string]string{
		"has another form":               strings.Replace(block, "Lost:", "Found:", 1),
		"another number of const blocks": block,
	} {
		_, err := eventsPage(fstest.MapFS{"pkg/observe/kind.go": {Data: []byte("package observe\n" + kinds)}})
		require.ErrorContains(t, err, problem)
	}
}

func TestARuleWithoutACommentIsNamed(t *testing.T) {
	t.Parallel()
	const file = "internal/engine/machine.go"
	const machine = "const (\n\tasking phase = iota\n\tphases\n)\nconst (\n\tevAsk eventKind = iota\n\teventKinds\n)\nvar course = table{evAsk: {asking: sends}}\n"
	for problem, source := range map[string]string{"the rule sends has no comment": machine, "machine.go has no course": ""} {
		_, err := coursePage(fstest.MapFS{file: {Data: []byte("package engine\n" + source)}})
		require.ErrorContains(t, err, problem)
	}
}

var kindScripts = map[string]string{
	asked: "var Needed = []string{\n" +
		"\t\"kind_spare\", // a number\n" +
		"\t\"kind_open\",  // (k, ...) the state\n" +
		"}\n\nvar Hooks = []string{\n" +
		"\t\"kind_heavy\", // (st, r) whether it fits\n}\n",
	"scripts/kind/lock.lua": "local kind_spare = 0\nlocal kind_open = open\n" +
		"-- kind_heavy: by weight,\n-- of course.\nlocal function kind_heavy(_, r)\n  return r.x\nend\n",
	"scripts/kind/pool.lua": "local kind_spare = 20 -- for pick\n" +
		"-- kind_open: its own.\nlocal function kind_open(k, claim)\nend\n",
	"scripts/line/acquire.lua": "if kind_heavy and kind_heavy(st, r) then\n  return kind_spare\nend\n",
	"scripts/lock_acquire.lua": "local at, st = kind_open(KEYS)\n",
}

func TestTheTableOfKinds(t *testing.T) {
	t.Parallel()
	tree := fstest.MapFS{}
	for file, text := range kindScripts {
		tree[file] = &fstest.MapFile{Data: []byte(text)}
	}
	_, err := kindsPage(tree)
	require.NoError(t, err)

	const lock, pool = "scripts/kind/lock.lua", "scripts/kind/pool.lua"
	for _, test := range []struct{ file, old, fresh, problem string }{
		{"scripts/lock_acquire.lua", "kind_open", "open", "scripts/scripts.go has kind_open, for which no script asks"},
		{pool, "local kind_spare = 20 -- for pick\n", "", pool + ": kind_spare is not defined"},
		{lock, "-- kind_heavy", "-- heavy", lock + ": the function kind_heavy has no comment that begins with its name"},
		{lock, "(_, r)", "(_, at)", lock + ": kind_heavy takes (_, at); scripts/scripts.go says (st, r)"},
		{lock, "(_, r)", "(_, r, at)", lock + ": kind_heavy takes (_, r, at); scripts/scripts.go says (st, r)"},
	} {
		before := kindScripts[test.file]
		require.Contains(t, before, test.old)
		tree[test.file] = &fstest.MapFile{Data: []byte(strings.Replace(before, test.old, test.fresh, 1))}
		_, err := kindsPage(tree)
		require.ErrorContains(t, err, test.problem)
		tree[test.file] = &fstest.MapFile{Data: []byte(before)}
	}
}

func TestThePageOfKeys(t *testing.T) {
	t.Parallel()
	_, err := keysPage(fstest.MapFS{keyTable: {Data: []byte("// Package keyspace.\n")}})
	require.ErrorContains(t, err, "pkg/keyspace/doc.go has no lines")
	require.ErrorContains(t, err, "state/thin: no such file")

	p, err := keysPage(os.DirFS("../../.."))
	require.NoError(t, err)
	space, err := keyspace.New("NS")
	require.NoError(t, err)
	for _, key := range []string{
		space.State(keyspace.Sem, "NAME"), space.Line(keyspace.Sem, "NAME"), space.State(keyspace.Lock, "NAME"),
		space.Line(keyspace.Lock, "NAME"), space.State(keyspace.Pool, "NAME"), space.Line(keyspace.Pool, "NAME"),
		space.Key(keyspace.Pool, "NAME", keyspace.ItemsPart), space.Key(keyspace.Pool, "NAME", keyspace.FreePart),
		space.Key(keyspace.Pool, "NAME", keyspace.BindingsPart), space.State(keyspace.Fence, "NAME"),
		space.State(keyspace.Swarm, "nodes"), space.Key(keyspace.Swarm, "nodes", keyspace.ProbesPart), space.Wake("NODE"),
	} {
		key = strings.NewReplacer("NS", "<namespace>", "NAME", "<name>", "NODE", "<node>").Replace(key)
		require.Contains(t, p.text, "\n| `"+key+"` | ")
	}
	require.Contains(t, p.text, "| `phase` | w: waiting")
}

func TestAPageIsWrittenAndThenFresh(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	sample := filesOf([]page{{name: "a", title: "A page", text: "\nnew\n\n"}}, map[string][]byte{"b/b_verb.lua": []byte("return")})
	require.EqualError(t, checkFiles(os.DirFS(root), sample),
		"docs/generated/a.md is stale: run `make docs`\nscripts/composed/b/b_verb.lua is stale: run `make docs`")
	require.NoError(t, write(root, sample))
	require.NoError(t, checkFiles(os.DirFS(root), sample))

	file := filepath.Join(root, "docs", "generated", "a.md")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "<!-- Written by `make docs`: do not edit. -->\n\n# A page\n\nnew\n", string(text))

	require.NoError(t, os.WriteFile(file, append(text, "old\n"...), 0o600))
	require.ErrorContains(t, checkFiles(os.DirFS(root), sample), "a.md is stale")
	require.NoError(t, write(root, sample))
	require.NoError(t, checkFiles(os.DirFS(root), sample))

	// A script that is no more goes, and a page that somebody has put there stays.
	other := filepath.Join(root, "docs", "generated", "other.md")
	require.NoError(t, os.WriteFile(other, text, 0o600))
	delete(sample, "scripts/composed/b/b_verb.lua")
	require.ErrorContains(t, checkFiles(os.DirFS(root), sample), "scripts/composed/b/b_verb.lua is not generated: remove it")
	require.NoError(t, write(root, sample))
	require.EqualError(t, checkFiles(os.DirFS(root), sample), "docs/generated/other.md is not generated: remove it")
}

func TestAPageThatNobodyWritesIsAnError(t *testing.T) {
	t.Parallel()
	tree := fstest.MapFS{"docs/generated/old.md": {}, byOthers[0]: {}}
	require.EqualError(t, checkFiles(tree, nil), "docs/generated/old.md is not generated: remove it")
}
