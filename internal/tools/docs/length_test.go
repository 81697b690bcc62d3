package main

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

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
		"13 words are written by hand, at most 12 are read: docs/a.md 8, README.md 4, docs/more/b.md 1, CONTRIBUTING.md 0")
	require.NoError(t, checkLength(fstest.MapFS{}, 0))
}

func TestTheReadmeIsShortAndBeginsWithTheProgramThatIsBuilt(t *testing.T) {
	t.Parallel()
	const program = "package main\n\nfunc main() {}\n"
	for text, want := range map[string]string{
		"# Berth\n\n```go\n" + program + "```\n":                                "",
		"# Berth\n\n```go\npackage main\n```\n":                                 "README.md does not begin with the program of " + first,
		"```go\n" + program + "```\n" + strings.Repeat("line\n", readmeLines-6): "",
		"```go\n" + program + "```\n" + strings.Repeat("line\n", readmeLines-5): "README.md has 200 lines, and is to have fewer than 200",
	} {
		tree := fstest.MapFS{"README.md": {Data: []byte(text)}, first: {Data: []byte("// First.\n" + program)}}
		if err := checkReadme(tree); want == "" {
			require.NoError(t, err)
		} else {
			require.EqualError(t, err, want)
		}
	}
}
