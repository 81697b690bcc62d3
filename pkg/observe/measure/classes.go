package measure

import (
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

const (
	// Other is the class of all names whose own class came after the first Config.MaxClasses
	// classes.
	Other = "other"

	// remembered is the number of names whose series is remembered, a power of 2.
	remembered = 4096
	// mostPrimitives is the number of primitives with series of their own. There are five, including the node, but
	// an event may name any.
	mostPrimitives = 8
)

// classes maps names to series. A series is never removed, and a class that came too late never
// gets one, so all events of a claim go to the same series.
type classes struct {
	nameClass func(string) string
	rows      int
	seed      maphash.Seed
	// memory has at each index the last name of a primitive with that hash. memory needs no lock, and
	// never grows.
	memory [remembered]atomic.Pointer[remembrance]

	mu         sync.Mutex
	left       int                   // guarded by mu: how many more classes may be made
	primitives []string              // guarded by mu
	byClass    map[[2]string]*series // guarded by mu: by primitive and class
	list       []*series             // guarded by mu: in the order in which they came
}

type remembrance struct {
	primitive, name string
	series          *series
}

func (c *classes) init(cfg Config, rows int) {
	c.nameClass, c.rows, c.seed = cfg.NameClass, rows, maphash.MakeSeed()
	c.left, c.byClass = cfg.MaxClasses, make(map[[2]string]*series)
}

// of returns the series of a name.
func (c *classes) of(primitive, name string) *series {
	at := &c.memory[(maphash.String(c.seed, name)+maphash.String(c.seed, primitive))%remembered]
	if r := at.Load(); r != nil && r.name == name && r.primitive == primitive {
		return r.series
	}
	class := ""
	if name != "" {
		class = strings.ToValidUTF8(c.nameClass(name), "?") // metrics libraries refuse others
	}
	s := c.find(primitive, class)
	at.Store(&remembrance{primitive, name, s})
	return s
}

// find returns the series of a class, and makes the series if the limit allows.
func (c *classes) find(primitive, class string) *series {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Contains(c.primitives, primitive) {
		if len(c.primitives) < mostPrimitives {
			c.primitives = append(c.primitives, primitive)
		} else {
			primitive = Other
		}
	}
	s := c.byClass[[2]string{primitive, class}]
	if s == nil && class != "" && class != Other {
		if c.left == 0 {
			class = Other
			s = c.byClass[[2]string{primitive, class}]
		} else {
			c.left--
		}
	}
	if s == nil {
		s = &series{primitive: primitive, class: class, cells: make([]cell, c.rows)}
		c.byClass[[2]string{primitive, class}] = s
		c.list = append(c.list, s)
	}
	return s
}

// all returns all series.
func (c *classes) all() []*series {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.list)
}
