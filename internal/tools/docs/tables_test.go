package main

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/tools/compose"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/scriptkit"
)

func TestTheTableOfRefusals(t *testing.T) {
	t.Parallel()
	text := refusalsPage([]scriptkit.Refusal{
		{Begins: "LOADING", Means: "it loads", Course: scriptkit.Passes, Seen: []string{"Redis", "Valkey"}},
		{Begins: "DENIED", Means: "it is protected", Course: scriptkit.PassesOnceServed},
		{Begins: "unknown command", Means: "it is old", Is: berth.ErrIncompatible, Seen: []string{"Redis"}},
	}).text
	for _, want := range []string{
		"| `LOADING` | it loads | repeats the call | `ErrUnavailable` | Redis, Valkey |\n",
		"| `DENIED` | it is protected | repeats the call, if the client was served before; else ends it |",
		"| no server: by the sources |\n",
		"| `unknown command` | it is old | ends the call | `ErrIncompatible` | Redis |\n",
	} {
		require.Contains(t, text, want)
	}
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

func TestThePageOfEvents(t *testing.T) {
	t.Parallel()
	block := "const (\n\t// Lost: a lease ended.\n\t// Fills: Fence. Level: warn.\n\tLost Kind = \"lost\"\n)\n"
	tree := fstest.MapFS{
		"pkg/observe/kind.go": {Data: []byte("package observe\n" + strings.Repeat(block, len(sentBy)))},
		"pkg/observe/event.go": {Data: []byte("package observe\ntype Event struct {\n" +
			"\t// Fence is the number\n\t// of the grant.\n\tFence int64\n}\n")},
	}
	p, err := eventsPage(tree)
	require.NoError(t, err)
	require.Contains(t, p.text, "| `lost` | A lease ended. | Fence | warn | semaphore |\n")
	require.Contains(t, p.text, "| `Fence` | The number of the grant. |\n")

	for problem, kinds := range map[string]string{
		"has another form":               strings.Replace(block, "Lost:", "Found:", 1),
		"another number of const blocks": block,
	} {
		tree["pkg/observe/kind.go"] = &fstest.MapFile{Data: []byte("package observe\n" + kinds)}
		_, err := eventsPage(tree)
		require.ErrorContains(t, err, problem)
	}
}

const machineSource = `package engine

type phase uint8

const (
	asking phase = iota // no answer
	held                // it holds
	phases
)

const (
	evAsk   eventKind = iota // it asks
	evEndOf                  // it is over
	eventKinds
)

var course = table{
	evAsk:   {asking: sends},
	evEndOf: {asking: dropsIt, held: dropsIt},
}
`

func TestThePageOfACourse(t *testing.T) {
	t.Parallel()
	tree := fstest.MapFS{
		"internal/engine/machine.go": {Data: []byte(machineSource)},
		"internal/engine/rules.go": {Data: []byte("package engine\n" +
			"// sends has it sent. It does more.\nfunc sends() {}\n// dropsIt ends it.\nfunc dropsIt() {}\n")},
	}
	p, err := coursePage(tree)
	require.NoError(t, err)
	require.Contains(t, p.text, "\n| event | | asking | held |\n|---|---|---|---|\n"+
		"| ask | it asks | sends | |\n| end-of | it is over | drops-it | drops-it |\n\n"+
		"- **sends** has it sent.\n- **drops-it** ends it.\n")

	delete(tree, "internal/engine/rules.go")
	_, err = coursePage(tree)
	require.ErrorContains(t, err, "the rule sends has no comment")
	tree["internal/engine/machine.go"] = &fstest.MapFile{Data: []byte("package engine\n")}
	_, err = coursePage(tree)
	require.ErrorContains(t, err, "machine.go has no course")
}

// The page shows what the program itself goes by.
func TestThePageOfTheCourse(t *testing.T) {
	t.Parallel()
	p, err := coursePage(os.DirFS("../../.."))
	require.NoError(t, err)
	require.Contains(t, p.text, "| asking | waiting | granted | held | loose | detached | ended |\n")
	require.Greater(t, strings.Count(p.text, "\n- **"), 25)
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
	p, err := kindsPage(tree)
	require.NoError(t, err)
	require.Contains(t, p.text, "\n| name | does | lock | pool |\n|---|---|---|---|\n"+
		"| `kind_spare` | a number | `0` | `20`: for pick |\n"+
		"| `kind_open(k, ...)` | the state | `open` | its own |\n"+
		"| `kind_heavy(st, r)` | whether it fits | by weight, of course | `false` |\n")

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

const bandScript = `--- @include "state/int"
-- The scores of <a line>.
-- One a member:
--   letter claim
--   h:<claim>  a hold: its deadline, or
--              band_end without one | none
-- In a pool
--     also:
--   e:<key>    band_rest + its end
-- No member is twice,
-- below band_end.
local band_end = 17592186044415
local band_rest = 262 * 17592186044416 -- far

-- place is something else:
--   other  is not read
local function place() end
`

func TestATableIsMadeOfAComment(t *testing.T) {
	t.Parallel()
	text, err := describe(bandScript, "member | score", constants(map[string]string{"": bandScript}))
	require.NoError(t, err)
	require.Equal(t, "The scores of \\<a line>. One a member: letter claim:\n\n"+
		"| member | score |\n|---|---|\n"+
		"| `h:<claim>` | a hold: its deadline, or 2^44 - 1 without one \\| none |\n"+
		"| In a pool also: | |\n"+
		"| `e:<key>` | 262 * 2^44 + its end |\n"+
		"\nNo member is twice, below 2^44 - 1.\n", text)

	_, err = describe("-- bare has no rows.\nlocal function bare() end\n", "a | b", nil)
	require.ErrorContains(t, err, "no such file, or no comment")
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
	tree := fstest.MapFS{"docs/generated/old.md": {}, measured[0]: {}}
	require.EqualError(t, checkFiles(tree, nil), "docs/generated/old.md is not generated: remove it")
}

func TestWhatIsWrittenAboutAScript(t *testing.T) {
	t.Parallel()
	scripts := compose.Scripts{
		{
			Script: scriptkit.Script{Name: "b_verb", Commands: []string{"TIME", "ZADD"}},
			Declares: compose.Header{
				Summary:    "take a|b.",
				Keys:       []compose.Param{{Name: "line", Type: "zset", Note: "ZSET claim -> place"}},
				Args:       []compose.Param{{Name: "lease", Note: "ms"}, {Name: "claim"}},
				Group:      []compose.Param{{Name: "claim"}, {Name: "record"}},
				GroupStart: 3,
				Returns:    []scriptkit.Return{{Status: "done", Fields: []string{"fence"}, Repeats: true}, {Status: "gone"}},
				Replay:     "same",
				Cost:       "O(1)",
			},
		},
		{Script: scriptkit.Script{Name: "a_verb", Commands: []string{"TIME", "PUBLISH"}}, Declares: compose.Header{Summary: "x"}},
	}
	text := scriptTable(scripts) + scriptDetails(scripts)
	for _, want := range []string{
		"| [`b_verb`](#b_verb) | take a\\|b | O(1) |\n",
		"### b_verb\n\nTake a|b.\n",
		"| `KEYS[1]` | line (ZSET claim -> place) |\n",
		"| `ARGV[1]` | lease (ms) |\n| `ARGV[2]` | claim |\n| `ARGV[3...]` | any number of times: claim, record |\n",
		"| returns | **done** fence, ... |\n| returns | **gone** |\n",
		"| replay | same |\n| commands | TIME ZADD |\n",
	} {
		require.Contains(t, text, want)
	}
	require.Equal(t,
		"user berth on >PASSWORD ~berth:* &berth:wake:* "+
			"+evalsha +eval +script|load +subscribe +ping +publish +time +zadd",
		smallestACL(scripts))
	require.Equal(t,
		"user berth-reads on >PASSWORD %R~berth:* +ping +hmget +mget +scan +time +zcount +zmscore +zrange +zrangebyscore +zrank",
		readingACL())
}
