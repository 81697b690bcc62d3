package main

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

const kindDocument = "# Kinds\n\n| a | b |\n|---|---|\n| `x` | y |\n\n" +
	"| name | asks | lock | pool |\n|---|---|---|---|\n" +
	"| `kind_spare` | a number | `0` | `20`: for pick |\n" +
	"| `kind_heavy(st, r)` | whether it fits | by weight | `false` |\n" +
	"| `kind_open(keys, ...)` | the state | `open` | its own |\n"

var kindScripts = map[string]string{
	"scripts/kind/lock.lua": "local kind_spare = 0\nlocal kind_open = open\n" +
		"-- kind_heavy: never.\nlocal function kind_heavy(_, r)\n  return r.x\nend\n",
	"scripts/kind/pool.lua": "local kind_spare = 20 -- for pick\nlocal kind_heavy = false\n" +
		"local function kind_open(keys, claim)\nend\n",
	"scripts/line/acquire.lua": "if kind_heavy and kind_heavy(st, r) then\n  return kind_spare\nend\n",
	"scripts/lock_acquire.lua": "local at, st = kind_open(KEYS)\n",
}

func TestTheTableOfKinds(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, file, old, fresh, problem string
	}{
		{name: "it is true"},
		{
			"one that a script asks for", "scripts/line/acquire.lua", "return", "kind_new()\nreturn",
			"the table of kinds lacks kind_new, which scripts/line/acquire.lua names",
		},
		{
			"one that a kind has", "scripts/kind/pool.lua", "local kind_heavy", "local kind_old = 1\nlocal kind_heavy",
			"the table of kinds lacks kind_old, which scripts/kind/pool.lua names",
		},
		{
			"one for which nobody asks", "scripts/lock_acquire.lua", "kind_open", "open",
			"the table of kinds has kind_open, for which no script asks",
		},
		{
			"one that a kind lacks", "scripts/kind/pool.lua", "local kind_heavy = false\n", "",
			"scripts/kind/pool.lua: kind_heavy is not defined",
		},
		{
			"one that is false no more", "scripts/kind/pool.lua", "kind_heavy = false", "kind_heavy = heavy",
			"scripts/kind/pool.lua: kind_heavy is heavy; the table says `false`",
		},
		{
			"one that is false now", "scripts/kind/lock.lua", "kind_open = open", "kind_open = false",
			"scripts/kind/lock.lua: kind_open is false; the table says `open`",
		},
		{
			"one that is a function now", "scripts/kind/pool.lua", "local kind_spare = 20", "local function kind_spare()",
			"scripts/kind/pool.lua: kind_spare is a function; the table says `20`: for pick",
		},
		{
			"another number", "scripts/kind/pool.lua", "20", "30",
			"scripts/kind/pool.lua: kind_spare is 30; the table says `20`: for pick",
		},
		{
			"another argument", "scripts/kind/lock.lua", "(_, r)", "(_, at)",
			"scripts/kind/lock.lua: kind_heavy takes (_, at); the table says (st, r)",
		},
		{
			"one more argument", "scripts/kind/lock.lua", "(_, r)", "(_, r, at)",
			"scripts/kind/lock.lua: kind_heavy takes (_, r, at); the table says (st, r)",
		},
		{
			"a kind without a column", "k.md", "| pool |", "| swarm |",
			"the table of kinds has no column for pool",
		},
		{
			"a column without a kind", "k.md", "| pool |", "| swarm |",
			"the table of kinds has a column for swarm, which is no kind",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			tree := fstest.MapFS{}
			for file, text := range kindScripts {
				tree[file] = &fstest.MapFile{Data: []byte(text)}
			}
			tree["k.md"] = &fstest.MapFile{Data: []byte(kindDocument)}
			if test.problem == "" {
				require.NoError(t, checkKinds(tree, "k.md"))
				return
			}
			before := string(tree[test.file].Data)
			require.Contains(t, before, test.old)
			tree[test.file] = &fstest.MapFile{Data: []byte(strings.Replace(before, test.old, test.fresh, 1))}
			require.ErrorContains(t, checkKinds(tree, "k.md"), test.problem)
		})
	}
	require.NoError(t, checkKinds(fstest.MapFS{}, "gone.md"))
}
