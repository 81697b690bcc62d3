// Command docs keeps the documentation true. It writes what is generated from the
// scripts' headers and comments into the docs. With -check it writes nothing, and fails
// if a generated part is stale, a link or an anchor leads nowhere, the README is too long,
// docs/parity.md names something that does not exist, the table of kinds in
// docs/architecture.md is not what scripts/kind and the other scripts say, or a script or a
// package is named by a word that is not in its glossary.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/berth-go/berth/pkg/scriptkit"
	"github.com/berth-go/berth/scripts"
)

// written are the documents that a reader is promised, from the root.
var written = []string{
	"README.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE",
	"docs/architecture.md", "docs/events.md", "docs/keys-and-scripts.md",
	"docs/operations.md", "docs/parity.md", "docs/semantics.md",
}

func main() {
	root := flag.String("root", ".", "the repository's root folder")
	check := flag.Bool("check", false, "write nothing; fail if something is not true")
	flag.Parse()
	if err := run(*root, *check); err != nil {
		fmt.Fprintf(os.Stderr, "docs: %v\n", err)
		os.Exit(1)
	}
}

func run(root string, check bool) error {
	library, err := scriptkit.Parse(scripts.FS)
	if err != nil {
		return err
	}
	tree := os.DirFS(root)
	stored, err := tables(tree)
	if err != nil {
		return err
	}
	sections := append(generate(library.Scripts()), stored...)
	if !check {
		return write(root, sections)
	}
	var problems []error
	for _, name := range written {
		if _, err := os.Stat(filepath.Join(root, name)); err != nil {
			problems = append(problems, fmt.Errorf("%s is missing", name))
		}
	}
	problems = append(problems,
		compare(root, sections),
		checkReadme(filepath.Join(root, "README.md")),
		checkLinks(tree),
		checkParity(tree, "docs/parity.md"),
		checkKinds(tree, "docs/architecture.md"),
		checkWords(tree, "docs/architecture.md"),
	)
	if err := errors.Join(problems...); err != nil {
		return err
	}
	fmt.Println("the docs are true")
	return nil
}

// readmeLines is how long a README may be that people still read.
const readmeLines = 200

func checkReadme(path string) error {
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil // told already
	}
	if err != nil {
		return err
	}
	if n := countLines(text); n >= readmeLines {
		return fmt.Errorf("README.md has %d lines, and is to have fewer than %d", n, readmeLines)
	}
	return nil
}
