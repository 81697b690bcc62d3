package main

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
)

var (
	code      = regexp.MustCompile("`([^`\n]+)`")
	arguments = regexp.MustCompile(`\([^()]*\)|\[[^\[\]]*\]`)
	goName    = regexp.MustCompile(`^[*&]?([A-Za-z_][A-Za-z0-9_]*)((?:\.[A-Z][A-Za-z0-9_]*)*)$`)
)

// checkParity looks up what the third column of the document's tables names in
// code: exported names, with or without their package, and tests.
func checkParity(tree fs.FS, document string) error {
	text, err := fs.ReadFile(tree, document)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // told already
	}
	if err != nil {
		return err
	}
	names, err := readNames(tree)
	if err != nil {
		return err
	}
	var problems []error
	for i, line := range strings.Split(string(text), "\n") {
		for _, name := range thirdColumn(line) {
			if err := names.lookUp(name); err != nil {
				problems = append(problems, fmt.Errorf("%s:%d: %w", document, i+1, err))
			}
		}
	}
	return errors.Join(problems...)
}

// thirdColumn returns the Go names in a table's line: what stands in code and
// reads like a name, without arguments and type arguments.
func thirdColumn(line string) []string {
	line = strings.TrimSpace(line)
	if !strings.HasPrefix(line, "|") {
		return nil
	}
	cells := strings.Split(strings.ReplaceAll(line, `\|`, "\x00"), "|")
	if len(cells) < 5 { // nothing, three cells, nothing
		return nil
	}
	var names []string
	for _, match := range code.FindAllStringSubmatch(cells[3], -1) {
		text, _, _ := strings.Cut(match[1], "/") // a subtest
		name := goName.FindStringSubmatch(arguments.ReplaceAllString(text, ""))
		if name == nil {
			continue
		}
		if full := name[1] + name[2]; strings.ToLower(full) != full {
			names = append(names, full)
		}
	}
	return names
}
