package scriptkit

import (
	"cmp"
	"fmt"
	"slices"
)

// Script is one script, ready to run. Treat it as immutable. Programs write its fields as literals, so that the linker
// leaves out the scripts that a program does not use.
type Script struct {
	// Name is the file's name without .lua.
	Name string
	// SHA is the SHA-1 of Source in hexadecimal, as EVALSHA wants it. Nothing checks it but Load.
	SHA string
	// File is the whole file, never nil. It begins with a comment, the header.
	File *string
	// Header is how many bytes of File the header takes.
	Header int
	// Keys are the keys, in order.
	Keys []Key
	// Several says that a call may have the keys of several names, one name's behind another's.
	Several bool
	// Args name the arguments, in order, without the group: "claim id".
	Args []string
	// Group names a group of arguments that may be there any number of times,
	// behind Args. Empty for none.
	Group []string
	// Returns are the replies, in the order of the header.
	Returns []Return
	// Commands are the Redis commands that the script calls, in upper case and
	// sorted. EVALSHA and EVAL are not among them.
	Commands []string
}

// Key is one key of a script.
type Key struct {
	// Name is what the key is: "line".
	Name string
	// Type is the key's type as TYPE answers it, "hash" or "zset".
	Type string
	// Also is a second type that the key may have, "" for none.
	Also string
}

// Plain is the status of a reply that is one text, and no table: its only field is that text. The header
// of its script has "plain", and what the text is.
const Plain = "plain"

// Return is one reply of a script.
type Return struct {
	// Status is the reply's first element.
	Status string
	// Fields names the elements behind the status.
	Fields []string
	// Repeats says that the last fields may be there again any number of times.
	Repeats bool
}

// Source is what is sent: File behind the header.
func (s *Script) Source() string {
	return (*s.File)[s.Header:]
}

// Library holds scripts by their names. It is safe for concurrent use.
type Library struct{ scripts []*Script }

// NewLibrary returns a library of these scripts.
func NewLibrary(scripts ...*Script) *Library {
	scripts = slices.Clone(scripts)
	slices.SortFunc(scripts, func(a, b *Script) int { return cmp.Compare(a.Name, b.Name) })
	return &Library{scripts}
}

// Script returns the script of that name. It panics if there is none.
func (l *Library) Script(name string) *Script {
	i, found := slices.BinarySearchFunc(l.scripts, name, func(s *Script, name string) int { return cmp.Compare(s.Name, name) })
	if !found {
		panic(fmt.Sprintf("scriptkit: no script %q", name))
	}
	return l.scripts[i]
}

// Scripts returns all scripts, sorted by name.
func (l *Library) Scripts() []*Script { return slices.Clone(l.scripts) }
