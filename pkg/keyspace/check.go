package keyspace

import (
	"strings"
	"unicode/utf8"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/text"
)

// maxBytes is the maximum length of a namespace or a name, in bytes.
const maxBytes = 512

// The characters that would break a key or a pattern built from a text.
const (
	// braces mark the hash tag. With one inside a name or a namespace, the
	// keys of a name could lie in several slots.
	braces = "{}"
	// globs have a meaning in the pattern of SCAN. A namespace is part of that
	// pattern; with one inside, a listing would find other namespaces' keys.
	globs = `*?[]\^`
)

// CheckNamespace returns a *[berth.ConfigError] for the field "Namespace" unless ns is valid
// UTF-8 of 1 to 512 bytes without the glob characters * ? [ ] \ ^ and the characters that
// [CheckName] refuses.
//
// A colon is allowed, so that "shop:eu" can be a namespace. The keys of two names still always
// differ. Neither a namespace nor a name contains a brace, so the first brace of a key is the
// one before the name. No kind contains a colon, so the kind is the last text between colons
// before that brace, and the namespace is all text before the kind. A channel is read from its
// end in the same way: no node id contains a colon.
func CheckNamespace(ns string) error {
	return check("Namespace", ns, braces+globs)
}

// CheckName returns a *[berth.ConfigError] for the field "name" unless name is valid UTF-8 of 1
// to 512 bytes without braces, control characters, line and paragraph separators, direction
// marks, and invisible characters such as U+200B. So a reader can tell names apart. Names are
// compared byte by byte: nothing is trimmed, folded or normalized.
func CheckName(name string) error {
	return check("name", name, braces)
}

func check(field, value, forbidden string) error {
	switch {
	case value == "":
		return berth.Invalid(field, "must not be empty")
	case len(value) > maxBytes:
		return berth.Invalid(field, "must have at most %d bytes, has %d", maxBytes, len(value))
	case !utf8.ValidString(value):
		return berth.Invalid(field, "must be valid UTF-8, is %q", value)
	}
	for i, r := range value {
		if text.Hidden(r) {
			return berth.Invalid(field, "must have no control characters, direction marks or invisible characters, has %U at byte %d", r, i)
		}
		if strings.ContainsRune(forbidden, r) {
			return berth.Invalid(field, "must have none of %s, has %q at byte %d", forbidden, r, i)
		}
	}
	return nil
}
