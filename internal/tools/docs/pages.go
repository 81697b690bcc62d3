package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/berth-go/berth/pkg/scriptkit"
)

// generated is the folder of what programs write: this one, and those that measure.
const generated = "docs/generated"

// measured are the files there that show what a measurement found. It cannot be made again
// from the source.
var measured = []string{generated + "/benchmarks.md", generated + "/torture.md"}

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
func pages(tree fs.FS, scripts []*scriptkit.Script) ([]page, error) {
	all := []page{
		{name: "scripts", title: "Scripts", text: scriptTable(scripts) + scriptDetails(scripts)},
		{name: "acl", title: "The smallest ACL", text: "```\n" + smallestACL(scripts) + "\n```\n\n## A user that only reads\n\n" +
			"For `pkg/inspect`, and what of the command only reads.\n\n```\n" + readingACL() + "\n```"},
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

// write writes the pages that are not up to date.
func write(root string, pages []page) error {
	if err := os.MkdirAll(filepath.Join(root, generated), 0o755); err != nil {
		return err
	}
	for _, p := range pages {
		file := filepath.Join(root, p.file())
		if old, err := os.ReadFile(file); err == nil && bytes.Equal(old, p.content()) {
			continue
		}
		if err := os.WriteFile(file, p.content(), 0o644); err != nil {
			return err
		}
		fmt.Println(p.file(), "written")
	}
	return nil
}

// checkPages returns an error for each page that is not as it would be written, and for
// each other file in their folder.
func checkPages(tree fs.FS, pages []page) error {
	var problems []error
	for _, p := range pages {
		if text, err := fs.ReadFile(tree, p.file()); err != nil || !bytes.Equal(text, p.content()) {
			problems = append(problems, fmt.Errorf("%s is stale: run `make docs`", p.file()))
		}
	}
	files, err := fs.Glob(tree, generated+"/*")
	for _, file := range files {
		written := slices.ContainsFunc(pages, func(p page) bool { return p.file() == file })
		if !written && !slices.Contains(measured, file) {
			problems = append(problems, fmt.Errorf("%s is not generated: remove it", file))
		}
	}
	return errors.Join(append(problems, err)...)
}
