package main

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

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
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			files := fstest.MapFS{"README.md": {Data: []byte(test.text)}}
			for name, file := range tree {
				files[name] = file
			}
			err := checkLinks(files)
			if test.problem == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, test.problem)
			require.True(t, strings.HasPrefix(err.Error(), "README.md: the link to "), err)
		})
	}
}
