package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/scriptkit"
)

var sample = section{file: "a.md", name: "scripts", text: "new"}

func TestASectionIsWrittenAndThenFresh(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	file := filepath.Join(root, "a.md")
	document := "top\n" + sample.begin() + "\nold\n" + sample.end() + "\nbottom\n"
	require.NoError(t, os.WriteFile(file, []byte(document), 0o600))

	require.ErrorContains(t, compare(root, []section{sample}), "a.md: scripts is stale")
	require.NoError(t, write(root, []section{sample}))
	require.NoError(t, compare(root, []section{sample}))

	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "top\n"+sample.begin()+"\nnew\n"+sample.end()+"\nbottom\n", string(text))
}

func TestASectionWithoutItsPlaceIsAnError(t *testing.T) {
	t.Parallel()
	for name, document := range map[string]string{
		"no markers": "text\n",
		"no end":     sample.begin() + "\n",
		"no begin":   sample.end() + "\n",
	} {
		_, err := sample.replace(document)
		require.ErrorContains(t, err, "no place for scripts", name)
	}
}

func TestAMissingFileIsAnErrorOfWritingOnly(t *testing.T) {
	t.Parallel()
	require.ErrorIs(t, write(t.TempDir(), []section{sample}), os.ErrNotExist)
	require.NoError(t, compare(t.TempDir(), []section{sample}), "the check names it among the missing files")
}

func TestTheReadmeIsShort(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "README.md")
	for _, test := range []struct {
		lines int
		ok    bool
	}{{1, true}, {199, true}, {200, false}} {
		text := make([]byte, 0, 2*test.lines)
		for range test.lines {
			text = append(text, "x\n"...)
		}
		require.NoError(t, os.WriteFile(file, text, 0o600))
		require.Equal(t, test.ok, checkReadme(file) == nil, test.lines)
	}
}

func TestWhatIsWrittenAboutAScript(t *testing.T) {
	t.Parallel()
	scripts := []*scriptkit.Script{
		{
			Name:     "b_verb",
			Commands: []string{"TIME", "ZADD"},
			Header: scriptkit.Header{
				Summary:    "take a|b.",
				Keys:       []scriptkit.Param{{Name: "line", Type: "zset", Note: "ZSET claim -> place"}},
				Args:       []scriptkit.Param{{Name: "lease", Note: "ms"}, {Name: "claim"}},
				Group:      []scriptkit.Param{{Name: "claim"}, {Name: "record"}},
				GroupStart: 3,
				Returns:    []scriptkit.Return{{Status: "done", Fields: []string{"fence"}, Repeats: true}, {Status: "gone"}},
				Replay:     "same",
				Cost:       "O(1)",
			},
		},
		{Name: "a_verb", Commands: []string{"TIME", "PUBLISH"}, Header: scriptkit.Header{Summary: "x"}},
	}
	text := generate(scripts)[0].text
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
			"+evalsha +eval +script|load +subscribe +unsubscribe +ping +publish +time +zadd",
		smallestACL(scripts))
}
