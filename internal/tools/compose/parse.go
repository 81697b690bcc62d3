// Package compose puts the Lua scripts together when Berth is built: `make docs` writes what it composes into
// scripts/composed, where programs take the scripts from.
//
// A script is a file at the root of the file system, with a header:
//
//	--[[
//	semaphore_acquire: take weight permits, or join the line.
//	KEYS[1] state (HASH field -> number)    KEYS[2] line (ZSET claim -> place)
//	ARGV[1] claim id    ARGV[2] lease (ms)
//	ARGV[3...] x2: claim id, place
//	RETURNS {"granted", fence, left_ms} | {"queued", ahead, next_ms}
//	  | {"listed", more, claim, ...}
//	REPLAY the same claim gets the same answer    COST O(log n)
//	]]
//	--- @include "lib/now"
//
// Params that share a line stand at least two spaces apart, and " -- " begins a
// remark. A key names its type first in its parentheses, and behind a semicolon
// another one that it may have. "ARGV[3...] x2" are groups of two from there on, any
// number of them; "KEYS[1...] x2" are all the keys of a name, and a call may have those of several. RETURNS names every reply: a status word, then the fields; a
// trailing "..." says that the fields before it repeat.
//
// # What scripts include
//
// The files in folders, at any depth, are no scripts: scripts and other such files
// include them. A file in a folder begins with a comment, and holds includes and
// definitions, but no other code:
//
//	-- The time of the server, in milliseconds.
//	--- @include "lib/int"
//	local second = 1000
//	local function now()
//	  local time = redis.call("TIME")
//	  return int(time[1]) * second + math.floor(time[2] / second)
//	end
//
// The composed script works as if all definitions stood before the script's own code, in
// the order of the files, by where each is first included. But a server takes 400 to 1300
// instructions for each function that a script makes, at every run. So the composed script
// has only the definitions that it needs: those that the script names, and those that a
// needed definition names. And each is made as late as it can be:
//
//   - A value of numbers, text, true, false, nil and operators is not made. It stands, in
//     parentheses, wherever it is named. A definition that is only another name for
//     something, as in local b = a, is not made either.
//   - A function that does nothing but return what is reckoned of its parameters, as int of
//     the example may be, is not made where its calls can do without: what it returns stands
//     in their place, with the arguments in it. Of string.format("%d", n), where n is known, the
//     text stands there.
//   - A function that only one other function needs is made inside of that one, each time
//     when that one runs.
//   - What is left is made right before the first part of the script that needs it; the
//     includes divide the script into parts. So a file may hold all that belongs together,
//     and a script may include behind a return what is seldom needed.
//
// Values of other kinds, tables for example, are made once. If their making reads or
// changes something, mind that this happens late.
//
// A parameter or local variable may have the name of a definition. A definition stays
// where that does not change what its own names mean. Refused is what cannot be kept
// right: to name a definition before it stands, to set it, to begin a statement with a
// value, and to name b of the example where a is a parameter or local variable.
//
// A hook that no file of a script defines is false. Hooks are the names that begin with kind_, and
// scripts.Hooks lists them: another such name is refused.
//
// A file names something of each file that it includes; a script may also include a
// file for another file that names it. Two files of one script never define the same
// name. A script includes nothing inside of a block.
package compose

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
	"testing/fstest"

	"github.com/berth-go/berth/pkg/scriptkit"
	"github.com/berth-go/berth/scripts"
)

// Script is a composed script, with what only the docs tell of it.
type Script struct {
	// Script is what a program has of the script.
	scriptkit.Script
	// Declares is what the script's header declares.
	Declares Header
	// Of are the paths of the files that the script is made of, sorted.
	Of []string
}

// Scripts are composed scripts, sorted by name.
type Scripts []*Script

// Library returns the scripts as a program has them.
func (s Scripts) Library() *scriptkit.Library {
	all := make([]*scriptkit.Script, len(s))
	for i, script := range s {
		all[i] = &script.Script
	}
	return scriptkit.NewLibrary(all...)
}

// Parse composes all *.lua of fsys: those at its root are the scripts, those in folders
// are what scripts include. The error names the file and joins what is wrong with all
// of them: a header that is missing or cannot be read, an include that is missing,
// circular, not used or inside of a block, a file in a folder that holds more than
// definitions, a name that two files of a script define, a definition that is named before
// it stands or that is set, KEYS and ARGV that are declared and not used or the other way
// round, a status that is in RETURNS and not in the body or the other way round, a command
// that is not written out, an assignment that the embedded server would not make.
func Parse(fsys fs.FS) (Scripts, error) {
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
		return nil, fmt.Errorf("compose: %w", err)
	}
	var all Scripts
	for _, p := range slices.Sorted(maps.Keys(sources)) { // names sort like paths: "." comes before all they may hold
		if !isScript(p) {
			continue
		}
		if sources[p] == nil {
			continue
		}
		script, err := sources[p].script(sources)
		if !errors.Is(err, errKnown) {
			problems = append(problems, sources[p].located(err))
		}
		all = append(all, script)
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, errors.New("compose: no *.lua at the root")
	}
	return all, nil
}

// Sources returns a copy of the files of Berth's scripts, for tests that change some.
func Sources() fstest.MapFS {
	files := fstest.MapFS{}
	err := fs.WalkDir(scripts.FS, ".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := scripts.FS.ReadFile(file)
		files[file] = &fstest.MapFile{Data: text}
		return err
	})
	if err != nil {
		panic(err) // they are embedded
	}
	return files
}

// errKnown is the error of a script with a file whose own error is joined already.
var errKnown = errors.New("a file cannot be read")

// MustParse is Parse for files whose faults a test has seen. It panics instead of
// returning an error.
func MustParse(fsys fs.FS) Scripts {
	all, err := Parse(fsys)
	if err != nil {
		panic(err)
	}
	return all
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
		return nil, fmt.Errorf("compose: %w", err)
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
	return fmt.Errorf("compose: %s: %w", s.path, err)
}

// script composes and checks the script that s holds.
func (s *source) script(sources map[string]*source) (*Script, error) {
	name := strings.TrimSuffix(path.Base(s.path), ".lua")
	header, err := parseHeader(name, s.header)
	if err != nil {
		return nil, err
	}
	composed, found, err := compose(s, sources)
	if err != nil {
		return nil, err
	}
	if err := checkBody(&header, found); err != nil {
		return nil, err
	}
	code, err := lex(composed.text)
	if err == nil {
		err = checkLost(code)
	}
	if err != nil {
		return nil, fmt.Errorf("as it is sent: %w", err)
	}
	commands, err := findCommands(found)
	if err != nil {
		return nil, err
	}
	sum := sha1.Sum([]byte(composed.text)) // what EVALSHA takes, no matter of security
	file := s.header + "\n" + composed.text
	script := scriptkit.Script{
		Name: name, SHA: hex.EncodeToString(sum[:]), File: &file, Header: len(s.header) + 1,
		Returns: header.Returns, Commands: commands, Several: header.Several,
	}
	for _, key := range header.Keys {
		script.Keys = append(script.Keys, scriptkit.Key{Name: key.Name, Type: key.Type, Also: key.Also})
	}
	for _, arg := range header.Args {
		script.Args = append(script.Args, arg.Name)
	}
	for _, arg := range header.Group {
		script.Group = append(script.Group, arg.Name)
	}
	return &Script{script, header, composed.files}, nil
}
