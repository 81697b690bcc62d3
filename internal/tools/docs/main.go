// Command docs keeps the documentation true. It writes the files of docs/generated, which
// are made of comments in the source and of the scripts' headers, and composes the scripts into
// scripts/composed. With -check it writes nothing, and fails if
//
//   - one of these files is stale;
//   - a link or an anchor leads nowhere;
//   - the README, or all docs together, are too long;
//   - a sentence has to be read twice;
//   - docs/parity.md names a test or an identifier that does not exist;
//   - the name of a script or a package has a word that neither the glossary nor words.go has;
//   - a workflow runs a command that is no target of make;
//   - the subject of a commit says too much or too little.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/berth-go/berth/internal/tools/compose"
	"github.com/berth-go/berth/scripts"
)

// written are the documents that a reader is promised, from the root.
var written = []string{
	"README.md", "CHANGELOG.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "LICENSE", "SECURITY.md",
	"docs/architecture.md", "docs/events.md", "docs/keys-and-scripts.md",
	"docs/operations.md", "docs/parity.md", "docs/semantics.md", "docs/tutorial.md", "docs/why-trust.md",
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
	library, err := compose.Parse(scripts.FS)
	if err != nil {
		return err
	}
	texts, err := library.Files(scripts.FS)
	if err != nil {
		return err
	}
	tree := os.DirFS(root)
	all, err := pages(tree, library)
	if err != nil {
		return err
	}
	files := filesOf(all, texts)
	if !check {
		return write(root, files)
	}
	var problems []error
	for _, name := range written {
		if _, err := os.Stat(filepath.Join(root, name)); err != nil {
			problems = append(problems, fmt.Errorf("%s is missing", name))
		}
	}
	problems = append(problems,
		checkFiles(tree, files),
		checkReadme(tree),
		checkLength(tree, wordsByHand),
		checkProse(tree),
		checkLinks(tree),
		checkParity(tree, "docs/parity.md"),
		checkWords(tree, "docs/architecture.md"),
		checkWorkflows(tree),
	)
	note, err := checkSubjects(context.Background(), root, subjectsSince)
	if err := errors.Join(append(problems, err)...); err != nil {
		return err
	}
	if note != "" {
		fmt.Println(note)
	}
	fmt.Println("the docs are true")
	return nil
}

// readmeWords is how many words a README may have that people still read.
const readmeWords = 1200

// first is the program that the README begins with.
const first = "examples/first/main.go"

// checkReadme looks at the README's length, and at the program in it: the one that is built.
func checkReadme(tree fs.FS) error {
	text, err := fs.ReadFile(tree, "README.md")
	if errors.Is(err, fs.ErrNotExist) {
		return nil // told already
	}
	if err != nil {
		return err
	}
	if n := len(bytes.Fields(text)); n > readmeWords {
		return fmt.Errorf("README.md has %d words, more than %d", n, readmeWords)
	}
	program, err := fs.ReadFile(tree, first)
	if err != nil {
		return err
	}
	_, program, _ = bytes.Cut(program, []byte("\n")) // the package's comment
	if !bytes.Contains(text, []byte("```go\n"+string(program)+"```\n")) {
		return fmt.Errorf("README.md does not begin with the program of %s", first)
	}
	return nil
}
