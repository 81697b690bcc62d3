package main

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

const wordsDocument = "# Design\n\n| patrol | of another section |\n\n## Words\n\n| word | meaning |\n|---|---|\n" +
	"| name, hand-off | what is contended for; the next one gets it |\n" +
	"| version (of a tide) | a number |\n| thin, `stem` | two |\n\n## Packages\n\n| seat | of another section |\n"

func TestTheGlossary(t *testing.T) {
	t.Parallel()
	require.Equal(t, map[string]bool{"name": true, "handoff": true, "version": true, "thin": true, "stem": true},
		glossary(wordsDocument))
}

func TestAWordThatNobodyExplains(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, file, text, problem string }{
		{"a script of known words", "scripts/thin_acquire.lua", "", ""},
		{"many of a word", "scripts/claim/names.lua", "", "scripts/claim/names.lua: the word claim "},
		{"a fragment", "scripts/line/handoff.lua", "", "scripts/line/handoff.lua: the word line "},
		{"a word of an entry", "scripts/thin_seat.lua", "", "scripts/thin_seat.lua: the word seat "},
		{"the folder of a fragment", "scripts/tide/acquire.lua", "", "scripts/tide/acquire.lua: the word tide "},
		{"a word of another section", "scripts/patrol.lua", "", "scripts/patrol.lua: the word patrol "},
		{"a package of a known word", "internal/anything/a.go", "package thin\n", ""},
		{"a package", "internal/thin/a.go", "package tide\n", "package tide: the word tide "},
		{"a command", "internal/tide/a.go", "package main\n", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			err := checkWords(fstest.MapFS{
				"docs/a.md": {Data: []byte(wordsDocument)}, test.file: {Data: []byte(test.text)},
			}, "docs/a.md")
			if test.problem == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, test.problem)
			require.Equal(t, 1, strings.Count(err.Error(), "the word "), "%v", err)
		})
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
