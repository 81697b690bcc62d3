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
	scripts []*Script // sorted by name
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
	l := &Library{}
	var problems []error
	for _, p := range slices.Sorted(maps.Keys(sources)) { // names sort like paths: "." comes before all they may hold
		s := sources[p]
		if strings.Contains(s.path, "/") {
			problems = append(problems, s.located(s.checkInclude()))
			continue
		}
		script, err := s.script(sources)
		l.scripts = append(l.scripts, script)
		problems = append(problems, s.located(err))
	}
	if len(l.scripts) == 0 {
		problems = append(problems, errors.New("scriptkit: no *.lua at the root"))
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return l, nil
}

// MustParse is Parse for embedded scripts at program start. It panics instead of
// returning an error.
func MustParse(fsys fs.FS) *Library {
	l, err := Parse(fsys)
	if err != nil {
		panic(err)
	}
	return l
}

// Script returns the script of that name. It panics if there is none, so ask at
// program start.
func (l *Library) Script(name string) *Script {
	i, ok := slices.BinarySearchFunc(l.scripts, name, func(s *Script, name string) int {
		return strings.Compare(s.Name, name)
	})
	if !ok {
		panic(fmt.Sprintf("scriptkit: no script %q", name))
	}
	return l.scripts[i]
}

// Scripts returns all scripts, sorted by name.
func (l *Library) Scripts() []*Script { return slices.Clone(l.scripts) }

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
			raw, err := fs.ReadFile(fsys, p)
			if err != nil {
				return nil, fmt.Errorf("scriptkit: %w", err)
			}
			s := &source{path: p}
			// A checkout with other line ends must not give another SHA.
			problems = append(problems, s.located(s.read(strings.ReplaceAll(string(raw), "\r\n", "\n"))))
			sources[p] = s
		}
	}
	return sources, errors.Join(problems...)
}

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
func (s *source) script(sources map[string]*source) (*Script, error) {
	name := strings.TrimSuffix(path.Base(s.path), ".lua")
	header, err := parseHeader(name, s.header)
	if err != nil {
		return nil, err
	}
	c := composer{sources: sources, done: make(map[string]bool)}
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
