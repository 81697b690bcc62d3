package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/berth-go/berth/pkg/scriptkit"
	"github.com/berth-go/berth/scripts"
)

var versionName = regexp.MustCompile(`^v\d+\.\d+\.\d+(-[0-9a-z.]+)?$`)

// keep writes the scripts of a release into a new folder of its version: each with
// its header, so that it can be parsed again, and their checksums, as sha256sum
// writes them. What is kept stays as it is: a folder that is there is an error.
func keep(library *scriptkit.Library, out, version string) error {
	if !versionName.MatchString(version) {
		return fmt.Errorf("-keep: %q is no version like v1.2.3 or v1.2.3-rc.1", version)
	}
	dir := filepath.Join(out, version)
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(err, fmt.Errorf("-keep: %s is there already: the scripts of a release are never written anew", dir))
	}
	draft, err := os.MkdirTemp(out, ".keep-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(draft) }() // renamed if all went well
	if err := errors.Join(write(library, draft), os.Chmod(draft, 0o755)); err != nil {
		return err
	}
	if err := same(library, draft); err != nil {
		return err
	}
	if err := os.Rename(draft, dir); err != nil {
		return err
	}
	fmt.Printf("%d scripts kept in %s\n", len(library.Scripts()), dir)
	return nil
}

// write writes the files of a version.
func write(library *scriptkit.Library, dir string) error {
	var sums strings.Builder
	for _, script := range library.Scripts() {
		name := script.Name + ".lua"
		text, err := scripts.FS.ReadFile(name)
		if err != nil {
			return err
		}
		header, _, found := strings.Cut(string(text), "\n]]\n")
		if !found {
			return fmt.Errorf("%s: no header", name)
		}
		file := []byte(header + "\n]]\n" + script.Source + "\n")
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(file), name)
		if err := os.WriteFile(filepath.Join(dir, name), file, 0o644); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(dir, "SHA256SUMS"), []byte(sums.String()), 0o644)
}

// same fails if what was written does not parse to the very scripts of the library.
func same(library *scriptkit.Library, dir string) error {
	again, err := scriptkit.Parse(os.DirFS(dir))
	if err != nil {
		return err
	}
	for _, script := range library.Scripts() {
		if again.Script(script.Name).SHA != script.SHA {
			return fmt.Errorf("%s: what would be kept is another script", script.Name)
		}
	}
	return nil
}
