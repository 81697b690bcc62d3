package exporter

import (
	"strings"
	"unicode/utf8"

	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/observe/measure"
)

// class is what names are told as, together: a kind, and a label made of the name.
type class struct {
	kind keyspace.Kind
	name string
}

// classes knows to which class a name belongs. As in a measure.Meter the first ones stay, and all names for whose class there
// is no room any more are of measure.Other.
type classes struct {
	of    func(name string) string
	left  int // how many classes may still come, all kinds together
	known map[class]bool
}

func newClasses(of func(name string) string, most int) *classes {
	return &classes{of: of, left: most, known: map[class]bool{}}
}

// class is that of a name. A label is valid UTF-8, which what somebody else has stored need not be.
func (c *classes) class(kind keyspace.Kind, name string) class {
	found := class{kind, strings.ToValidUTF8(c.of(name), string(utf8.RuneError))}
	switch {
	case c.known[found] || found.name == measure.Other:
		return found
	case c.left == 0:
		return class{kind, measure.Other}
	}
	c.left--
	c.known[found] = true
	return found
}
