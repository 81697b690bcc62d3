package inspect

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/reader"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/pkg/keyspace"
)

// town is some names and those who use them, without a server: each step is whole, and who is first is
// served at once.
type town struct {
	r     *rand.Rand
	clock time.Time
	fence int64
	names []*shop
	folk  []*person
	ids   int
}

// shop is a name. What it serves is reckoned anew from its holds each time.
type shop struct {
	kind     keyspace.Kind
	name     string
	capacity int            // of a semaphore or a lock
	sharers  map[string]int // of a pool: how many may hold each resource
	holds    []*reader.Held
	line     []*reader.Place
}

// person is a flow that does one thing after another.
type person struct {
	id, owner, label string
	node             string
	rank             int      // of the last name that it asked for, in a town with ranks
	waits            string   // the claim that it waits with, "" for none
	stale            []string // claims that it has given up, and that are still there
}

func newTown(seed uint64) *town {
	t := &town{r: rand.New(rand.NewPCG(seed, 1)), clock: noon.Add(-time.Hour)}
	for i := range 2 + t.r.IntN(5) {
		s := &shop{kind: []keyspace.Kind{keyspace.Sem, keyspace.Lock, keyspace.Pool}[t.r.IntN(3)], name: fmt.Sprintf("name-%d", i), capacity: 1}
		switch s.kind {
		case keyspace.Sem:
			s.capacity = 1 + t.r.IntN(4)
		case keyspace.Pool:
			s.sharers = map[string]int{}
			for j := range 1 + t.r.IntN(3) {
				s.sharers[fmt.Sprintf("r%d", j)] = 1 + t.r.IntN(2)
			}
		}
		t.names = append(t.names, s)
	}
	for i := range 3 + t.r.IntN(6) {
		id := fmt.Sprintf("p%d", i)
		t.folk = append(t.folk, &person{id: id, owner: "owner-" + id, label: "label-" + id, node: "node-" + id, rank: -1})
	}
	return t
}

func (w *town) tick() time.Time {
	w.clock = w.clock.Add(time.Millisecond)
	return w.clock
}

// holdsOf are the holds of a person, with the names.
func (w *town) holdsOf(p *person) (held []*reader.Held, where []*shop) {
	for _, s := range w.names {
		for i := range s.holds {
			if s.holds[i].Meta["person"] == p.id {
				held, where = append(held, s.holds[i]), append(where, s)
			}
		}
	}
	return held, where
}

// ask has a person claim something of a name, with a weight, a priority or a resource.
func (w *town) ask(p *person, s *shop) {
	w.ids++
	priority := w.r.IntN(3) - 1
	q := &reader.Place{Waiter: berth.Waiter{
		ID: fmt.Sprintf("%s.%04d", p.node, w.ids), Node: p.node, Label: p.label, Owner: p.owner, Weight: 1, Priority: priority,
		Since: w.tick(), Meta: map[string]string{"person": p.id},
	}, Record: state.Record{Wait: time.Minute, Heard: w.clock}, Lane: 2 * (127 - priority)}
	q.Place = fmt.Sprintf("%013d", q.Since.UnixMilli())
	switch s.kind {
	case keyspace.Sem:
		q.Weight = 1 + w.r.IntN(s.capacity)
	case keyspace.Pool:
		if w.r.IntN(2) == 0 {
			q.Resource = slices.Sorted(maps.Keys(s.sharers))[w.r.IntN(len(s.sharers))]
			q.Wants.Resource = q.Resource
		}
	}
	p.waits = q.ID
	s.line = append(s.line, q)
	slices.SortFunc(s.line, func(a, b *reader.Place) int { return cmp.Compare(order(a), order(b)) })
	w.serve()
}

// give takes a claim out of a name, as a hold or a wait.
func (w *town) give(id string) {
	w.tick()
	for _, s := range w.names {
		s.holds = slices.DeleteFunc(s.holds, func(h *reader.Held) bool { return h.ID == id })
		s.line = slices.DeleteFunc(s.line, func(q *reader.Place) bool { return q.ID == id })
	}
	w.serve()
}

func (s *shop) free(key string) bool {
	n := 0
	for _, h := range s.holds {
		if h.Resource == key {
			n++
		}
	}
	return n < s.sharers[key]
}

func (s *shop) used() (n int) {
	for _, h := range s.holds {
		n += h.Weight
	}
	return n
}

// gets is what a waiting claim can have now.
func (w *town) gets(s *shop, q *reader.Place) (resource string, ok bool) {
	if s.kind != keyspace.Pool {
		return "", q.Weight <= s.capacity-s.used()
	}
	if q.Resource != "" {
		return q.Resource, s.free(q.Resource)
	}
	keys := slices.DeleteFunc(slices.Sorted(maps.Keys(s.sharers)), func(key string) bool { return !s.free(key) })
	if len(keys) == 0 {
		return "", false
	}
	return keys[w.r.IntN(len(keys))], true
}

// serve grants to the first in line while it fits; of a pool each lane has a first.
func (w *town) serve() {
	for _, s := range w.names {
		for i := 0; i < len(s.line); i++ {
			q := s.line[i]
			resource, ok := w.gets(s, q)
			if !ok && s.kind != keyspace.Pool {
				break
			} else if !ok {
				continue
			}
			w.fence++
			s.line = slices.Delete(s.line, i, i+1)
			s.holds = append(s.holds, &reader.Held{Holder: berth.Holder{
				ID: q.ID, Node: q.Node, Label: q.Label, Owner: q.Owner, Weight: q.Weight, Fence: w.fence, Resource: resource,
				Lease: time.Minute, Granted: w.tick(), Meta: q.Meta,
			}, Record: state.Record{Phase: 'h', Wait: time.Minute}, Deadline: w.clock.Add(time.Minute)})
			for _, p := range w.folk {
				if p.waits == q.ID {
					p.waits = ""
				} else if slices.Contains(p.stale, q.ID) {
					s.holds[len(s.holds)-1].Record.Phase = 'g' // nobody takes it up
				}
			}
			i = -1
		}
	}
}

// read is a snapshot of a name.
func (w *town) read(s *shop) *snapshot {
	n := readAs(s.kind, s.name, s.capacity, copies(s.holds))
	n.At, n.Waiting = w.clock, len(s.line)
	for _, q := range copies(s.line) {
		q.Record.Heard = w.clock
		if q.Resource != "" {
			n.Lanes = append(n.Lanes, q)
		} else {
			n.Line = append(n.Line, q)
		}
	}
	if s.kind == keyspace.Pool {
		n.Capacity, n.Pool, n.Filled, n.Items = len(s.sharers), &berth.PoolInfo{}, true, map[string]reader.Item{}
		for key, most := range s.sharers {
			i := stored(state.Item{Max: int64(most)})
			for _, h := range s.holds {
				if h.Resource == key {
					i.Claims = append(i.Claims, h.ID)
				}
			}
			n.Items[key] = i
		}
	}
	return n
}

func (w *town) readAll() (all []*snapshot) {
	for _, s := range w.names {
		all = append(all, w.read(s))
	}
	return all
}

// copied is a town that goes on by itself.
func (w *town) copied() *town {
	c := *w
	c.r = rand.New(rand.NewPCG(7, 7))
	c.names, c.folk = nil, nil
	for _, s := range w.names {
		other := *s
		other.holds, other.line = copies(s.holds), copies(s.line)
		c.names = append(c.names, &other)
	}
	for _, p := range w.folk {
		other := *p
		c.folk = append(c.folk, &other)
	}
	return &c
}

// runOut has all who do not wait give everything back, until nothing moves. It returns the claims that
// wait then, sorted.
func (w *town) runOut() (left []string) {
	for moved := true; moved; {
		moved = false
		for _, p := range w.folk {
			held, _ := w.holdsOf(p)
			if p.waits == "" && len(held) > 0 {
				w.give(held[0].ID)
				moved = true
			}
		}
	}
	for _, s := range w.names {
		for _, q := range s.line {
			left = append(left, q.ID)
		}
	}
	slices.Sort(left)
	return left
}
