package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/berth-go/berth/internal/tools/compose"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// generated is the folder of what programs write: this one, and others.
const generated = "docs/generated"

// composed is the folder of the scripts as a server gets them.
const composed = "scripts/composed"

// byOthers are the files there that others write: of what a measurement found, which cannot be made again from the source,
// and a test of the command.
var byOthers = []string{generated + "/benchmarks.md", generated + "/torture.md", generated + "/json.schema.json"}

// firstLine is that of every file that this program writes.
const firstLine = "<!-- Written by `make docs`: do not edit. -->\n"

// page is a file of the folder.
type page struct {
	name  string // of the file, without .md
	title string
	text  string
}

func (p page) file() string { return path.Join(generated, p.name+".md") }

func (p page) content() []byte {
	text := bytes.TrimSpace([]byte(p.text))
	return []byte(firstLine + "\n# " + p.title + "\n\n" + string(text) + "\n")
}

// pages returns all that there are, made of the source in tree.
func pages(tree fs.FS, scripts compose.Scripts) ([]page, error) {
	all := []page{
		{name: "scripts", title: "Scripts", text: whereScripts + scriptTable(scripts) + scriptDetails(scripts)},
		{name: "acl", title: "The smallest ACL", text: "```\n" + smallestACL(scripts) + "\n```\n\n## A user that only reads\n\n" +
			"For `pkg/inspect`, and what of the command only reads. Without `+hscan` drains are shown as not readable.\n\n```\n" + readingACL() + "\n```"},
		refusalsPage(scriptkit.Refusals()),
	}
	for _, make := range []func(fs.FS) (page, error){keysPage, kindsPage, eventsPage, coursePage} {
		p, err := make(tree)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.file(), err)
		}
		all = append(all, p)
	}
	return all, nil
}

// filesOf returns what is written: the pages, and the composed scripts, by path from the root.
func filesOf(pages []page, scripts map[string][]byte) map[string][]byte {
	files := map[string][]byte{}
	for _, p := range pages {
		files[p.file()] = p.content()
	}
	for file, text := range scripts {
		files[path.Join(composed, file)] = text
	}
	return files
}

// write writes the files that are not up to date, and removes composed scripts that no longer exist.
func write(root string, files map[string][]byte) error {
	for _, file := range slices.Sorted(maps.Keys(files)) {
		to := filepath.Join(root, file)
		if old, err := os.ReadFile(to); err == nil && bytes.Equal(old, files[file]) {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(to, files[file], 0o644); err != nil {
			return err
		}
		fmt.Println(file, "written")
	}
	others, err := others(os.DirFS(root), files)
	for _, file := range others {
		if strings.HasPrefix(file, composed) {
			fmt.Println(file, "removed")
			err = errors.Join(err, os.Remove(filepath.Join(root, file)))
		}
	}
	return err
}

// checkFiles returns an error for each file that is not as it would be written, and for
// each other file in their folders.
func checkFiles(tree fs.FS, files map[string][]byte) error {
	var problems []error
	for _, file := range slices.Sorted(maps.Keys(files)) {
		if text, err := fs.ReadFile(tree, file); err != nil || !bytes.Equal(text, files[file]) {
			problems = append(problems, fmt.Errorf("%s is stale: run `make docs`", file))
		}
	}
	others, err := others(tree, files)
	for _, file := range others {
		problems = append(problems, fmt.Errorf("%s is not generated: remove it", file))
	}
	return errors.Join(append(problems, err)...)
}

// others are the files in the folders of what is written that nothing writes.
func others(tree fs.FS, files map[string][]byte) (found []string, err error) {
	for _, folder := range []string{generated, composed} {
		err = errors.Join(err, fs.WalkDir(tree, folder, func(file string, entry fs.DirEntry, err error) error {
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return nil
			case err != nil || entry.IsDir():
				return err
			case files[file] == nil && !slices.Contains(byOthers, file):
				found = append(found, file)
			}
			return nil
		}))
	}
	return found, err
}
