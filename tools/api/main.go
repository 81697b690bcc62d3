// Command api compares what Berth exports with the API that is kept of the last version: of the library's public
// packages, and of those of contrib.
//
//	go run ./api check    fails, and says what is incompatible
//	go run ./api keep     keeps the API of this tree
//
// Both are run in tools, outside of the workspace. It is golang.org/x/exp/cmd/apidiff for several modules at once. That
// command writes 400 kB for each package, with paths of the machine, as all of rueidis that can be reached belongs to it.
// The bundle has it once, without positions, and is read whatever release of Go has written it.
package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"go/token"
	"go/types"
	"os"
	"slices"
	"strings"

	"golang.org/x/exp/apidiff"
	"golang.org/x/tools/go/gcexportdata"
	"golang.org/x/tools/go/packages"
)

const (
	library = "github.com/berth-go/berth"
	kept    = "api/last.gz"
)

func main() {
	now, err := load()
	switch do := strings.Join(os.Args[1:], " "); {
	case err != nil:
	case do == "check":
		err = check(now)
	case do == "keep":
		err = keep(now)
	default:
		err = fmt.Errorf("%q is neither check nor keep", do)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "api:", err)
		os.Exit(1)
	}
}

// load returns the packages that versions cover, see docs/architecture.md#packages.
func load() ([]*types.Package, error) {
	loaded, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedTypes | packages.NeedImports | packages.NeedDeps,
		Dir:  "..", Env: append(os.Environ(), "GOWORK="),
	}, library, library+"/pkg/...", library+"/contrib/...")
	if err != nil {
		return nil, err
	}
	var all []*types.Package
	for _, p := range loaded {
		if len(p.Errors) > 0 {
			return nil, p.Errors[0]
		}
		if p.PkgPath != library+"/pkg/scriptkit" {
			all = append(all, p.Types)
		}
	}
	slices.SortFunc(all, func(a, b *types.Package) int { return strings.Compare(a.Path(), b.Path()) })
	return all, nil
}

func keep(now []*types.Package) error {
	var b bytes.Buffer
	packed, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return err
	}
	// A file set that knows no position of these packages.
	if err := gcexportdata.WriteBundle(packed, token.NewFileSet(), now); err != nil {
		return err
	}
	if err := packed.Close(); err != nil {
		return err
	}
	return os.WriteFile(kept, b.Bytes(), 0o644)
}

func check(now []*types.Package) error {
	file, err := os.Open(kept)
	if err != nil {
		return err
	}
	defer file.Close()
	packed, err := gzip.NewReader(file)
	if err != nil {
		return fmt.Errorf("%s: %w", kept, err)
	}
	before, err := gcexportdata.ReadBundle(packed, token.NewFileSet(), make(map[string]*types.Package))
	if err != nil {
		return fmt.Errorf("%s: %w", kept, err)
	}
	report := apidiff.ModuleChanges(&apidiff.Module{Path: library, Packages: before}, &apidiff.Module{Path: library, Packages: now})
	var text strings.Builder
	if err := report.TextIncompatible(&text, true); err != nil {
		return err
	}
	if text.Len() > 0 {
		return fmt.Errorf("programs that use the last version may not compile any more:\n%s"+
			"Undo that. If it is meant, say in CHANGELOG how to follow, and run `make keep-api`.", text.String())
	}
	return nil
}
