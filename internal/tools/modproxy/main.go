// Command modproxy writes a module as one version of a file GOPROXY, so that
// what a user of a release meets can be tried before there is a release.
//
//	modproxy -from cmd/berth -out DIR -version v0.0.1
package main

import (
	"archive/zip"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

func main() {
	from := flag.String("from", ".", "the module's root folder")
	out := flag.String("out", "", "the folder of the proxy")
	version := flag.String("version", "", "the version to give the module: v0.0.1")
	flag.Parse()
	if err := run(*from, *out, *version); err != nil {
		fmt.Fprintf(os.Stderr, "modproxy: %v\n", err)
		os.Exit(1)
	}
}

func run(from, out, version string) error {
	if out == "" || version == "" {
		return errors.New("-out and -version: both are needed")
	}
	mod, err := os.ReadFile(filepath.Join(from, "go.mod"))
	if err != nil {
		return err
	}
	module, err := modulePath(mod)
	if err != nil {
		return err
	}
	dir := filepath.Join(out, filepath.FromSlash(module), "@v")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	archive, err := pack(os.DirFS(from), module+"@"+version)
	if err != nil {
		return err
	}
	info := fmt.Sprintf(`{"Version":%q,"Time":"2000-01-01T00:00:00Z"}`, version)
	for name, content := range map[string][]byte{
		"list":            []byte(version + "\n"),
		version + ".info": []byte(info),
		version + ".mod":  mod,
		version + ".zip":  archive,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// modulePath returns the path of the module that a go.mod names.
func modulePath(mod []byte) (string, error) {
	for line := range strings.Lines(string(mod)) {
		if path, ok := strings.CutPrefix(line, "module "); ok {
			return strings.TrimSpace(path), nil
		}
	}
	return "", errors.New("go.mod names no module")
}

// pack returns the files of the module as the go command wants them: without
// nested modules, which are modules of their own.
func pack(tree fs.FS, prefix string) ([]byte, error) {
	var buffer bytes.Buffer
	archive := zip.NewWriter(&buffer)
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return enter(tree, name)
		}
		if !entry.Type().IsRegular() {
			return nil
		}
		content, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		file, err := archive.Create(path.Join(prefix, name))
		if err != nil {
			return err
		}
		_, err = file.Write(content)
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	return buffer.Bytes(), nil
}

// enter says by fs.SkipDir that a folder is no part of the module.
func enter(tree fs.FS, name string) error {
	if name == "." {
		return nil
	}
	if base := path.Base(name); strings.HasPrefix(base, ".") || base == "bin" {
		return fs.SkipDir
	}
	_, err := fs.Stat(tree, path.Join(name, "go.mod"))
	switch {
	case err == nil:
		return fs.SkipDir
	case errors.Is(err, fs.ErrNotExist):
		return nil
	default:
		return err
	}
}
