package view

import (
	"slices"
	"strconv"
	"strings"

	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/pkg/inspect"
)

// Command is what an operator types for a call, in the words of a shell; with a namespace of "" it names none. It is "" where no
// argument can say it: one with a zero byte.
func Command(m inspect.Mend, namespace string) string {
	words, args, flags := []string{"berth", string(m.Kind), m.Verb}, []string{m.Name}, []string(nil)
	resource := func() {
		if strings.Contains(m.Resource, "\x00") {
			m.Resource, flags = text.Quoted(m.Resource), append(flags, "--quoted")
		}
		args = append(args, m.Resource)
	}
	switch {
	case m.Verb == "flush":
		words, args = []string{"berth", "swarm", "flush"}, nil
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
	if namespace != "" {
		words = append(words, "--namespace", namespace)
	}
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
