package view

import (
	"slices"
	"strconv"
	"strings"

	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
)

// Mending is a command that mends something, see Command, and what must be so, "" for nothing.
type Mending struct{ If, Command string }

// String is both in a line.
func (m Mending) String() string { return m.Says() + " " + m.Command }

// Says is what stands before the command.
func (m Mending) Says() string {
	if m.If == "" {
		return "To mend it:"
	}
	return "To mend it, if " + m.If + ":"
}

// Mends are the commands for what an operator may call. A call is left out that no command can say.
func Mends(all []inspect.Mend, where ...string) (commands []Mending) {
	for _, m := range all {
		if command := Command(m, where...); command != "" {
			commands = append(commands, Mending{m.If, command})
		}
	}
	return commands
}

// Releasing ends a hold.
func Releasing(c inspect.Claim) inspect.Mend {
	return inspect.Mend{Verb: "release", Kind: c.Kind, Name: c.Name, Claim: c.ID()}
}

// In are the words of a command that is about a namespace: none for the default.
func In(namespace string) []string {
	if namespace == "" || namespace == keyspace.DefaultNamespace {
		return nil
	}
	return []string{"--namespace", namespace}
}

// Command is what an operator types for a call, in the words of a shell; where says which server and namespace. It is "" where
// no argument can say it: one with a zero byte.
func Command(m inspect.Mend, where ...string) string {
	words, args, flags := []string{"berth", string(m.Kind), m.Verb}, []string{m.Name}, []string(nil)
	resource := func() {
		if strings.Contains(m.Resource, "\x00") {
			m.Resource, flags = text.Quoted(m.Resource), append(flags, "--quoted")
		}
		args = append(args, m.Resource)
	}
	switch {
	case m.Verb == "flush":
		words, args = []string{"berth", "node", "flush"}, nil
	case m.Name == "":
		words, args, flags = []string{"berth", m.Verb}, nil, []string{"--all"}
	case m.Owner != "":
		flags = []string{"--owner", m.Owner, "--force"}
	case m.Verb == "release":
		args, flags = append(args, m.Claim), []string{"--force"}
	case m.Verb == "resize":
		args = append(args, strconv.Itoa(m.Capacity))
	case m.Verb == "rest":
		flags = []string{"--for", "0"}
		resource()
	case m.Verb == "add":
		resource()
	}
	words = append(words, where...)
	if slices.ContainsFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "-") }) {
		words = append(append(words, flags...), "--")
		flags = nil
	}
	words = slices.Concat(words, args, flags)
	if strings.Contains(strings.Join(words, ""), "\x00") {
		return ""
	}
	return text.Shell(words...)
}
