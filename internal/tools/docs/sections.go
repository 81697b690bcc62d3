package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// section is a generated part of a document.
type section struct {
	file string // from the root
	name string // in the markers around it
	text string
	// table says that it is the table of a file of scripts, which has its own markers.
	table bool
}

func (s section) begin() string {
	if s.table {
		return "<!-- " + s.name + " -->"
	}
	return "<!-- begin " + s.name + ": written by `make docs` -->"
}

func (s section) end() string {
	if s.table {
		return tableEnd
	}
	return "<!-- end " + s.name + " -->"
}

// write puts the sections into their files.
func write(root string, sections []section) error {
	for _, s := range sections {
		old, fresh, err := s.apply(root)
		if err != nil {
			return err
		}
		if bytes.Equal(old, fresh) {
			continue
		}
		if err := os.WriteFile(filepath.Join(root, s.file), fresh, 0o644); err != nil {
			return err
		}
		fmt.Printf("%s: %s written\n", s.file, s.name)
	}
	return nil
}

// compare tells which sections are not as they would be written.
func compare(root string, sections []section) error {
	var problems []error
	for _, s := range sections {
		old, fresh, err := s.apply(root)
		if err == nil && !bytes.Equal(old, fresh) {
			err = fmt.Errorf("%s: %s is stale: run `make docs`", s.file, s.name)
		}
		if errors.Is(err, os.ErrNotExist) {
			continue // told already
		}
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}

// apply returns the file of s as it is, and as it is to be.
func (s section) apply(root string) (old, fresh []byte, err error) {
	old, err = os.ReadFile(filepath.Join(root, s.file))
	if err != nil {
		return nil, nil, err
	}
	text, err := s.replace(string(old))
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", s.file, err)
	}
	return old, []byte(text), nil
}

// replace returns the document with the section between its markers.
func (s section) replace(document string) (string, error) {
	before, rest, found := strings.Cut(document, s.begin()+"\n")
	_, after, ends := strings.Cut(rest, s.end())
	if !found || !ends {
		return "", fmt.Errorf("no place for %s: want the lines %q and %q", s.name, s.begin(), s.end())
	}
	return before + s.begin() + "\n" + strings.TrimSpace(s.text) + "\n" + s.end() + after, nil
}

func countLines(text []byte) int {
	return bytes.Count(bytes.TrimRight(text, "\n"), []byte("\n")) + 1
}
