package reader

import (
	"slices"

	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/pkg/keyspace"
)

// marks are what a reading begins and ends with, to see whether something moved meanwhile.
type marks struct {
	values state.Values
	group  *state.Group // of a lock
	counts state.Counts // of a pool
}

// extras are the fields of a state that marks have beside the values.
var extras = map[keyspace.Kind]string{keyspace.Sem: "stem", keyspace.Lock: "stem", keyspace.Pool: "pool"}

// marks adds what asks for them.
func (p *trip) marks(t *turn) int {
	return p.fields(t.key(keyspace.StatePart), "", "v", "fmt", extras[t.kind])
}

// marksLast adds what asks for them, and for all else of that hash, behind all other commands.
func (p *trip) marksLast(t *turn) int {
	i := p.marks(t)
	p.last = p.parts[i].command + 1
	return i
}

// read reads marks. there is false for a name that is not there. The error says that the name must not be
// interpreted.
func (t *turn) read(p *trip, at int) (m marks, there bool, err error) {
	fields := p.texts(at)
	if p.err != nil {
		return m, false, p.err
	}
	text, former, extra := fields[0], fields[1], fields[2]
	if p.isNil(at, 0) {
		if number, newer := state.Newer(former); newer {
			return m, false, state.Incompatible(t.name, number)
		}
		return m, false, nil
	}
	v, number, ok := state.ParseValues(text)
	if !ok {
		return m, false, t.odd("hash", number)
	}
	m.values = v
	switch t.kind {
	case keyspace.Lock:
		m.group, err = state.ParseGroup(extra, v.Fence)
	case keyspace.Pool:
		m.counts, err = state.ParseCounts(extra, v.Used)
	}
	if err != nil {
		return m, false, t.odd("hash", 0)
	}
	return m, true, nil
}

// still says that nothing has moved between two marks. All that moves a claim changes one of these: a
// grant raises the fence, a place that is taken the ticket, an end lowers used or waiting, a re-entry
// changes the group, a resource the counts of its pool, an operator the revision. What heartbeats write is left
// out: they move nobody.
func (m marks) still(now marks) bool {
	a, b := m.values, now.values
	same := a.Fence == b.Fence && a.Ticket == b.Ticket && a.Capacity == b.Capacity && a.Used == b.Used &&
		a.Waiting == b.Waiting && a.Keep == b.Keep && a.Revision == b.Revision
	return same && m.counts == now.counts && sameGroup(m.group, now.group)
}

func sameGroup(a, b *state.Group) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Fence == b.Fence && a.Count == b.Count && slices.Equal(a.Entries, b.Entries)
}
