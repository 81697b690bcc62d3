package scriptkit

import (
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
)

// Script is one script, ready to run. Treat it as immutable.
type Script struct {
	// Name is the file's name without .lua.
	Name string
	// Source is what is sent: the includes and the body, without comments.
	Source string
	// SHA is the SHA-1 of Source in hexadecimal, as EVALSHA wants it.
	SHA string
	// Header is what the script declares.
	Header Header
	// Commands are the Redis commands that the script calls, in upper case and
	// sorted: for an ACL and for the docs. EVALSHA and EVAL are not among them.
	Commands []string
}

// Library holds the scripts of a program. It is safe for concurrent use.
type Library struct {
	names   []string                  // sorted
	compose map[string]func() *Script // by name; each does it once
}

// Parse reads the scripts, *.lua at the root of fsys, and what they include
// from lib/*.lua. The error names the file and joins what is wrong with all of
// them: a header that is missing or cannot be read, an include that is missing
// or circular, KEYS and ARGV that are declared and not used or the other way
// round, a status that is in RETURNS and not in the body or the other way round,
// a command that is not written out.
func Parse(fsys fs.FS) (*Library, error) {
	sources, err := readSources(fsys)
	if err != nil {
		return nil, err
	}
	l := &Library{compose: make(map[string]func() *Script)}
	find := func(path string) (*source, error) { return sources[path], nil }
	var problems []error
	for _, p := range slices.Sorted(maps.Keys(sources)) { // names sort like paths: "." comes before all they may hold
		s := sources[p]
		if strings.Contains(s.path, "/") {
			problems = append(problems, s.located(s.checkInclude()))
			continue
		}
		script, err := s.script(find)
		l.add(nameOf(p), func() *Script { return script })
		problems = append(problems, s.located(err))
	}
	if len(l.names) == 0 {
		problems = append(problems, errNone)
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return l, nil
}

var errNone = errors.New("scriptkit: no *.lua at the root")

// MustParse is Parse for embedded scripts at program start. It panics instead of
// returning an error.
func MustParse(fsys fs.FS) *Library {
	l, err := Parse(fsys)
	if err != nil {
		panic(err)
	}
	return l
}

// Lazy is MustParse for a program that uses few of many scripts: a script is read,
// composed and checked when it is first asked for. Only then it panics for what is
// wrong with it, so have a test Parse the same files.
func Lazy(fsys fs.FS) *Library {
	paths, err := fs.Glob(fsys, "*.lua")
	if err == nil && len(paths) == 0 {
		err = errNone
	}
	if err != nil {
		panic(err)
	}
	l := &Library{compose: make(map[string]func() *Script)}
	var mu sync.Mutex // guards sources
	sources := make(map[string]*source)
	find := func(path string) (*source, error) {
		if s := sources[path]; s != nil {
			return s, nil
		}
		s, err := readSource(fsys, path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, nil
		case err == nil:
			sources[path] = s
		}
		return s, err
	}
	for _, path := range paths {
		l.add(nameOf(path), sync.OnceValue(func() *Script {
			mu.Lock()
			defer mu.Unlock()
			s, err := find(path)
			if err != nil {
				panic(err)
			}
			script, err := s.script(find)
			if err != nil {
				panic(s.located(err))
			}
			return script
		}))
	}
	return l
}

func (l *Library) add(name string, compose func() *Script) {
	l.names = append(l.names, name)
	l.compose[name] = compose
}

// Script returns the script of that name. It panics if there is none, so ask at
// program start.
func (l *Library) Script(name string) *Script {
	compose := l.compose[name]
	if compose == nil {
		panic(fmt.Sprintf("scriptkit: no script %q", name))
	}
	return compose()
}

// Scripts returns all scripts, sorted by name.
func (l *Library) Scripts() []*Script {
	scripts := make([]*Script, len(l.names))
	for i, name := range l.names {
		scripts[i] = l.Script(name)
	}
	return scripts
}

// source is one file.
type source struct {
	path   string
	code   []token
	header string // the first comment
	pieces []piece
}

func readSources(fsys fs.FS) (map[string]*source, error) {
	sources := make(map[string]*source)
	var problems []error
	for _, pattern := range []string{"*.lua", "lib/*.lua"} {
		paths, err := fs.Glob(fsys, pattern)
		if err != nil {
			return nil, fmt.Errorf("scriptkit: %w", err)
		}
		for _, p := range paths {
			s, err := readSource(fsys, p)
			problems = append(problems, err)
			sources[p] = s
		}
	}
	return sources, errors.Join(problems...)
}

func readSource(fsys fs.FS, path string) (*source, error) {
	raw, err := fs.ReadFile(fsys, path)
	if err != nil {
		return nil, fmt.Errorf("scriptkit: %w", err)
	}
	s := &source{path: path}
	// A checkout with other line ends must not give another SHA.
	return s, s.located(s.read(strings.ReplaceAll(string(raw), "\r\n", "\n")))
}

func nameOf(file string) string { return strings.TrimSuffix(path.Base(file), ".lua") }

// read fills s from the text of the file.
func (s *source) read(text string) error {
	tokens, err := lex(text)
	if err != nil {
		return err
	}
	if len(tokens) > 0 && tokens[0].start == 0 && tokens[0].kind == kindComment {
		s.header = tokens[0].text
	}
	s.code = slices.DeleteFunc(slices.Clone(tokens), func(t token) bool { return t.kind == kindComment })
	s.pieces, err = cut(text, tokens, s.code)
	return err
}

// located says in which file a problem is. It is nil for nil.
func (s *source) located(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("scriptkit: %s: %w", s.path, err)
}

// script composes and checks the script that s holds.
func (s *source) script(find func(path string) (*source, error)) (*Script, error) {
	name := nameOf(s.path)
	header, err := parseHeader(name, s.header)
	if err != nil {
		return nil, err
	}
	c := composer{find: find, done: make(map[string]bool)}
	if err := c.add(s, nil); err != nil {
		return nil, err
	}
	if err := checkBody(&header, c.facts); err != nil {
		return nil, err
	}
	commands, err := findCommands(c.facts)
	if err != nil {
		return nil, err
	}
	composed := strings.Join(c.bodies, "")
	sum := sha1.Sum([]byte(composed)) // what EVALSHA takes, no matter of security
	return &Script{
		Name:     name,
		Source:   composed,
		SHA:      hex.EncodeToString(sum[:]),
		Header:   header,
		Commands: commands,
	}, nil
}
