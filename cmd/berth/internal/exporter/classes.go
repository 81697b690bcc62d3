package exporter

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/berth-go/berth/pkg/keyspace"
)

// other is the class of all names for whose own class there is no room.
const other = "other"

// class is what names are told as, together: a kind, and a label made of the name.
type class struct {
	kind keyspace.Kind
	name string
}

// classes knows to which class a name belongs, and keeps the number of classes bounded: whatever came first stays.
type classes struct {
	of    func(name string) string
	most  int // of each kind, other not counted
	known map[class]bool
	count map[keyspace.Kind]int
}

func newClasses(of func(name string) string, most int) *classes {
	return &classes{of: of, most: most, known: map[class]bool{}, count: map[keyspace.Kind]int{}}
}

// class is that of a name. A label is valid UTF-8, which a name need not be.
func (c *classes) class(kind keyspace.Kind, name string) class {
	found := class{kind, strings.ToValidUTF8(c.of(name), string(utf8.RuneError))}
	if c.known[found] || found.name == other {
		return found
	}
	if c.count[kind] >= c.most {
		return class{kind, other}
	}
	c.known[found] = true
	c.count[kind]++
	return found
}

// words finds the parts of a name that are numbers or ids.
var words = regexp.MustCompile(`[0-9A-Za-z]*[0-9][0-9A-Za-z]*`)

// collapse has numbers and ids in a name become *.
func collapse(name string) string { return words.ReplaceAllString(name, "*") }
