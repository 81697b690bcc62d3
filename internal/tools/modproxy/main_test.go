package main

import (
	"archive/zip"
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

func TestPackTakesTheModuleAlone(t *testing.T) {
	t.Parallel()
	archive, err := pack(fstest.MapFS{
		"go.mod":          {Data: []byte("module m\n")},
		"a.go":            {Data: []byte("package m\n")},
		"pkg/b/b.go":      {Data: []byte("package b\n")},
		".git/config":     {},
		".cache/x/y":      {},
		"bin/berth":       {},
		"test/go.mod":     {Data: []byte("module m/test\n")},
		"test/t.go":       {},
		"test/bench/b.go": {},
	}, "m@v1.0.0")
	require.NoError(t, err)

	reader, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	require.NoError(t, err)
	var names []string
	for _, file := range reader.File {
		names = append(names, file.Name)
	}
	require.Equal(t, []string{"m@v1.0.0/a.go", "m@v1.0.0/go.mod", "m@v1.0.0/pkg/b/b.go"}, names)
}

func TestRunWritesWhatTheGoCommandAsksFor(t *testing.T) {
	t.Parallel()
	from, out := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(from, "go.mod"), []byte("module example.org/m\n\ngo 1.26\n"), 0o644))

	require.NoError(t, run(from, out, "v1.2.3"))

	dir := filepath.Join(out, "example.org", "m", "@v")
	for name, want := range map[string]string{
		"list":        "v1.2.3\n",
		"v1.2.3.info": `{"Version":"v1.2.3","Time":"2000-01-01T00:00:00Z"}`,
		"v1.2.3.mod":  "module example.org/m\n\ngo 1.26\n",
	} {
		content, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, want, string(content), name)
	}
	require.FileExists(t, filepath.Join(dir, "v1.2.3.zip"))
	require.Error(t, run(from, out, ""), "a version is needed")

	require.NoError(t, os.WriteFile(filepath.Join(from, "go.mod"), []byte("go 1.26\n"), 0o644))
	require.EqualError(t, run(from, out, "v1.2.3"), "go.mod names no module")
}
