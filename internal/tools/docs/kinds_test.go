package main

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

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
	for _, test := range []struct {
		name, file, old, fresh, problem string
	}{
		{name: "it is true"},
		{
			"one for which nobody asks", "scripts/lock_acquire.lua", "kind_open", "open",
			"scripts/scripts.go has kind_open, for which no script asks",
		},
		{
			"one that a kind lacks", "scripts/kind/pool.lua", "local kind_spare = 20 -- for pick\n", "",
			"scripts/kind/pool.lua: kind_spare is not defined",
		},
		{
			"a function without a comment", "scripts/kind/lock.lua", "-- kind_heavy", "-- heavy",
			"scripts/kind/lock.lua: the function kind_heavy has no comment that begins with its name",
		},
		{
			"another argument", "scripts/kind/lock.lua", "(_, r)", "(_, at)",
			"scripts/kind/lock.lua: kind_heavy takes (_, at); scripts/scripts.go says (st, r)",
		},
		{
			"one more argument", "scripts/kind/lock.lua", "(_, r)", "(_, r, at)",
			"scripts/kind/lock.lua: kind_heavy takes (_, r, at); scripts/scripts.go says (st, r)",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			tree := fstest.MapFS{}
			for file, text := range kindScripts {
				tree[file] = &fstest.MapFile{Data: []byte(text)}
			}
			if test.problem == "" {
				p, err := kindsPage(tree)
				require.NoError(t, err)
				require.Contains(t, p.text, "\n| name | does | lock | pool |\n|---|---|---|---|\n"+
					"| `kind_spare` | a number | `0` | `20`: for pick |\n"+
					"| `kind_open(k, ...)` | the state | `open` | its own |\n"+
					"| `kind_heavy(st, r)` | whether it fits | by weight, of course | `false` |\n")
				return
			}
			before := string(tree[test.file].Data)
			require.Contains(t, before, test.old)
			tree[test.file] = &fstest.MapFile{Data: []byte(strings.Replace(before, test.old, test.fresh, 1))}
			_, err := kindsPage(tree)
			require.ErrorContains(t, err, test.problem)
		})
	}
}
