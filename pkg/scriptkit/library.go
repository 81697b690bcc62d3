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

// Parse reads all *.lua of fsys: those at its root are the scripts, those in folders
// are what scripts include. The error names the file and joins what is wrong with all
// of them: a header that is missing or cannot be read, an include that is missing,
// circular, not used or inside of a block, a file in a folder that holds more than
// definitions, a name that two files of a script define, a definition that is named before
// it stands or that is set, KEYS and ARGV that are declared and not used or the other way
// round, a status that is in RETURNS and not in the body or the other way round, a command
// that is not written out.
func Parse(fsys fs.FS) (*Library, error) {
	sources := make(map[string]*source) // by path, nil for a file whose problem is already known
	var problems []error
	err := fs.WalkDir(fsys, ".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(file) != ".lua" {
			return err
		}
		s, err := readSource(fsys, file)
		problems = append(problems, err)
		sources[file] = s
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("scriptkit: %w", err)
	}
	find := func(path string) (*source, error) {
		s, ok := sources[path]
		if ok && s == nil {
			return nil, errKnown
		}
		return s, nil
	}
	l := &Library{compose: make(map[string]func() *Script)}
	for _, p := range slices.Sorted(maps.Keys(sources)) { // names sort like paths: "." comes before all they may hold
		if !isScript(p) {
			continue
		}
		script, err := newScript(p, find)
		if !errors.Is(err, errKnown) {
			problems = append(problems, err)
		}
		l.add(nameOf(p), func() *Script { return script })
	}
	if len(l.names) == 0 {
		problems = append(problems, errNone)
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return l, nil
}

// errKnown is the error of a script with a file whose own error is joined already.
var errKnown = errors.New("a file cannot be read")

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
			script, err := newScript(path, find)
			if err != nil {
				panic(err)
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
	path    string
	header  string // the first comment
	pieces  []*piece
	checked bool // it uses what it includes
}

func readSource(fsys fs.FS, path string) (*source, error) {
	raw, err := fs.ReadFile(fsys, path)
	if err != nil {
		return nil, fmt.Errorf("scriptkit: %w", err)
	}
	s := &source{path: path}
	// A checkout with other line ends must not give another SHA.
	if err := s.read(strings.ReplaceAll(string(raw), "\r\n", "\n")); err != nil {
		return nil, s.located(err)
	}
	return s, nil
}

// isScript reports whether a file is a script, and none that scripts include.
func isScript(file string) bool { return !strings.Contains(file, "/") }

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
	if err := s.cut(text, tokens); err != nil || isScript(s.path) {
		return err
	}
	return s.checkInclude()
}

// located says in which file a problem is. It is nil for nil.
func (s *source) located(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("scriptkit: %s: %w", s.path, err)
}

// newScript composes and checks the script of that path.
func newScript(path string, find func(path string) (*source, error)) (*Script, error) {
	s, err := find(path)
	if err != nil {
		return nil, err
	}
	script, err := s.script(find)
	return script, s.located(err)
}

// script composes and checks the script that s holds.
func (s *source) script(find func(path string) (*source, error)) (*Script, error) {
	name := nameOf(s.path)
	header, err := parseHeader(name, s.header)
	if err != nil {
		return nil, err
	}
	composed, found, err := compose(s, find)
	if err != nil {
		return nil, err
	}
	if err := checkBody(&header, found); err != nil {
		return nil, err
	}
	commands, err := findCommands(found)
	if err != nil {
		return nil, err
	}
	sum := sha1.Sum([]byte(composed)) // what EVALSHA takes, no matter of security
	return &Script{
		Name:     name,
		Source:   composed,
		SHA:      hex.EncodeToString(sum[:]),
		Header:   header,
		Commands: commands,
	}, nil
}
