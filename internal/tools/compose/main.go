// Command compose writes the scripts as a server gets them, each with what it
// includes, one file a script, for tools that read plain Lua.
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
	flag.Parse()
	if err := run(*out); err != nil {
		fmt.Fprintf(os.Stderr, "compose: %v\n", err)
		os.Exit(1)
	}
}

func run(out string) error {
	if out == "" {
		return errors.New("-out: missing")
	}
	library, err := scriptkit.Parse(scripts.FS)
	if err != nil {
		return err
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
