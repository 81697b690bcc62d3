package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// wordsByHand is how many words README.md, CONTRIBUTING.md, test/README.md and docs may have together,
// without docs/generated. Longer docs are not read.
const wordsByHand = 27_800

// checkLength counts them as `wc -w` does, code blocks and tables too.
func checkLength(tree fs.FS, limit int) error {
	files := []string{"README.md", "CONTRIBUTING.md", "test/README.md"}
	err := fs.WalkDir(tree, "docs", func(name string, _ fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name == generated:
			return fs.SkipDir
		case path.Ext(name) == ".md":
			files = append(files, name)
		}
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	total, counts := 0, make(map[string]int)
	for _, file := range files {
		text, err := fs.ReadFile(tree, file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		counts[file] = len(strings.Fields(string(text)))
		total += counts[file]
	}
	if total <= limit {
		return nil
	}
	slices.SortFunc(files, func(a, b string) int { return counts[b] - counts[a] })
	for i, file := range files {
		files[i] = fmt.Sprintf("%s %d", file, counts[file])
	}
	return fmt.Errorf("%d words are written by hand, at most %d are read: %s", total, limit, strings.Join(files, ", "))
}
