package main

import (
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/tools/compose"
	"github.com/berth-go/berth/pkg/scriptkit"
)

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
