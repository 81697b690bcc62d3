//go:build unix

package main

import (
	"regexp"
	"slices"
	"strings"
)

// again returns the command that runs a test, or all of a package, again.
func (t *tests) again(path, name string) string {
	words := slices.Clone(t.env)
	words = append(words, "go")
	if t.module != "." {
		words = append(words, "-C", t.module)
	}
	words = append(words, "test", "-race", "-count=1")
	if t.cpu != "" {
		words = append(words, "-cpu="+t.cpu)
	}
	if name != "" {
		words = append(words, "-run", "'"+strings.ReplaceAll(pattern(name), "'", `'\''`)+"'")
	}
	return strings.Join(append(words, t.relative(path)), " ")
}

// pattern matches one test.
func pattern(name string) string {
	parts := strings.Split(name, "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	return strings.Join(parts, "/")
}

// relative returns a package as the go command takes it in the module's folder.
func (t *tests) relative(path string) string {
	path, _, _ = strings.Cut(path, " ") // "p [p.test]": p built for the tests of p
	path = strings.TrimSuffix(strings.TrimSuffix(path, ".test"), "_test")
	if path == t.path {
		return "."
	}
	if below, ok := strings.CutPrefix(path, t.path+"/"); ok {
		return "./" + below
	}
	return path
}

// short returns a package as a person reads it: its folder in the repository.
func (t *tests) short(path string) string {
	path = t.relative(path)
	if t.module == "." {
		return path
	}
	if path == "." {
		return "./" + t.module
	}
	if below, ok := strings.CutPrefix(path, "./"); ok {
		return "./" + t.module + "/" + below
	}
	return path
}
