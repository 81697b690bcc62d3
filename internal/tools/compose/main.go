// Command compose writes the scripts as a server gets them, each with what it
// includes, one file a script: for tools that read plain Lua, and with -keep for
// the tests of rolling deploys.
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

func main() {
	out := flag.String("out", "", "the folder to write to, which must be there")
	keep := flag.String("keep", "", "write them with their headers and a list of checksums into a new folder of `version` (v1.2.3) below")
	flag.Parse()
	keeps := false // also with an empty version, which is refused
	flag.Visit(func(f *flag.Flag) { keeps = keeps || f.Name == "keep" })
	if err := run(*out, *keep, keeps); err != nil {
		fmt.Fprintf(os.Stderr, "compose: %v\n", err)
		os.Exit(1)
	}
}

func run(out, version string, keeps bool) error {
	if out == "" {
		return errors.New("-out: missing")
	}
	library, err := scriptkit.Parse(scripts.FS)
	if err != nil {
		return err
	}
	if keeps {
		return keep(library, out, version)
	}
	for _, script := range library.Scripts() {
		path := filepath.Join(out, script.Name+".lua")
		if err := os.WriteFile(path, []byte(script.Source+"\n"), 0o644); err != nil {
			return err
		}
	}
	fmt.Printf("%d scripts composed\n", len(library.Scripts()))
	return nil
}
