package inspect

import (
	"maps"
	"slices"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/reader"
	"github.com/berth-go/berth/pkg/keyspace"
)

// What is a change that comes by itself.
type What string

// The changes that come by themselves.
const (
	LeaseEnds    What = "lease_ends"
	MaxHoldEnds  What = "max_hold_ends"
	RestEnds     What = "rest_ends"
	LeavesPool   What = "leaves_pool"
	BindWaitEnds What = "bind_wait_ends"
	ClaimLeaves  What = "claim_leaves" // it has died in line
	PauseEnds    What = "pause_ends"
	SweepDue     What = "sweep_due"   // something is free, and nobody has looked yet
	Released     What = "released"    // of AskedClaim.Freed: an operator releases it
	SwarmFlush   What = "swarm_flush" // a dead node's hold without end is taken back by the next one
)

// Event is the next change of a name that somebody in line notices.
type Event struct {
	What What          `json:"what"`
	At   time.Time     `json:"at"`
	In   time.Duration `json:"inMs"`
	// Claim and Resource are whose end it is, "" for none.
	Claim    string `json:"claim,omitzero"`
	Resource string `json:"resource,omitzero"`
	// Grants are the claims that get what they ask for in that moment, in order, at most 10.
	Grants []string `json:"grants,omitzero"`
	// Open says that others may be granted beside them: that depends on which of several resources
	// the first in line gets, and on how many may share one that was not read.
	Open bool `json:"open,omitzero"`
	// If are the nodes that must not be heard of before, or the change does not come.
	If []string `json:"if,omitzero"`
}

// future is a name as it goes on by itself: it has the time of now, and what has ended by then is gone.
type future struct {
	s      *snapshot
	claim  string // whose end or move is a change, too
	silent func(node string) bool
	now    time.Time
	limit  time.Time // nothing is known of later than this; zero: no bound

	used    int
	holds   []*reader.Held
	line    []*reader.Place
	lanes   []*reader.Place
	items   map[string]*reader.Item
	keys    []string          // of them, in order
	by      map[string]string // resource -> the claim whose end made it rest
	unnamed int               // free resources that were not read
	order   []string          // the free resources that were read, as they came free
	ifs     []string
	change  *Event // of this moment, the first one
	own     bool   // the explained claim ended, left or moved
	work    int    // how much was looked at
}

// forecast is the first change that somebody in line notices, nil for none, and until when that is all
// that there is to say (zero: for ever). silent says of which nodes nothing is to be expected.
func forecast(s *snapshot, claim string, silent func(node string) bool) (*Event, time.Time) {
	f := begin(s, claim, silent)
	if s.shared != nil {
		defer func() { s.shared.work += f.work }()
	}
	f.pass()
	f.limit = f.horizon()
	if e := f.notice(); e != nil {
		e.What, e.At, e.In, e.Claim, e.Resource = SweepDue, s.At, 0, "", ""
		return e, f.limit
	}
	for {
		next, ok := f.next()
		if !ok || !f.limit.IsZero() && next.After(f.limit) {
			return f.flush(), f.limit
		}
		f.now = next
		f.pass()
		if e := f.notice(); e != nil {
			return e, f.limit
		}
	}
}

func begin(s *snapshot, claim string, silent func(node string) bool) *future {
	f := &future{s: s, claim: claim, silent: silent, now: s.At, used: s.Held, items: map[string]*reader.Item{}, by: map[string]string{}}
	if s.Kind == keyspace.Lock {
		f.used = len(s.Holds) + s.HoldsLeft // each entry counts
	}
	f.holds, f.line, f.lanes = slices.Clone(s.Holds), slices.Clone(s.Line), slices.Clone(s.Lanes)
	if s.Pool != nil {
		f.unnamed = s.Pool.Free
	}
	f.keys = slices.Sorted(maps.Keys(s.Items))
	for _, key := range f.keys {
		i := s.Items[key]
		if f.items[key] = &i; i.Free() {
			f.unnamed, f.order = f.unnamed-1, append(f.order, key)
		}
	}
	return f
}

// horizon is until when what was read suffices.
func (f *future) horizon() time.Time {
	s, limit := f.s, time.Time{}
	bound := func(t time.Time) {
		if !t.IsZero() && (limit.IsZero() || t.Before(limit)) {
			limit = t
		}
	}
	if s.HoldsLeft > 0 && len(s.Holds) > 0 {
		bound(s.Holds[len(s.Holds)-1].Deadline)
	}
	if s.RestsLeft > 0 {
		last := time.Time{}
		for _, i := range s.Items {
			if rest := i.RestEnd(); rest.After(last) {
				last = rest
			}
		}
		bound(last)
	}
	bound(s.Leaves)
	for _, i := range f.items {
		if rest := i.RestEnd(); i.Unbegun && !rest.IsZero() {
			bound(rest.Add(-time.Millisecond))
		}
	}
	if s.LanesLeft > 0 {
		bound(s.At)
	}
	for _, h := range f.holds {
		if h.Record.Phase == 'g' && !f.silent(h.Node) { // its first call begins what it asked for
			if h.NoRenew && h.Lease != berth.Forever {
				bound(s.At.Add(h.Lease))
			}
			if h.MaxHold > 0 {
				bound(s.At.Add(h.MaxHold))
			}
		}
	}
	return limit
}

// ends is when a hold ends by itself, zero for never, and which node must not be heard of before, "" for none.
func (f *future) ends(h *reader.Held) (end time.Time, unless string) {
	if f.s.Kind == keyspace.Lock {
		return f.entryEnds(h)
	}
	return f.holdEnds(h)
}

func (f *future) holdEnds(h *reader.Held) (end time.Time, unless string) {
	switch {
	case f.silent(h.Node) && (renews(&h.Holder) || h.Record.Phase == 'g'):
		return h.Deadline, h.Node
	case h.Record.Phase == 'g':
		return time.Time{}, ""
	case renews(&h.Holder):
		return h.Record.Limit, ""
	}
	return h.Deadline, ""
}

// entryEnds: only the outermost entry that has called renews, and for all.
func (f *future) entryEnds(h *reader.Held) (end time.Time, unless string) {
	outer := f.outer()
	end, unless = f.holdEnds(outer)
	switch {
	case outer == h:
		return end, unless
	case h.Fresh && f.silent(h.Node):
		return h.Deadline, h.Node
	case (outer.Record.Phase == 'g' || renews(&outer.Holder)) && unless == "":
		return h.Record.Limit, ""
	}
	return h.Deadline, unless
}

// outer is the outermost entry of a lock: one that has called, if there is one.
func (f *future) outer() *reader.Held {
	for _, e := range f.holds {
		if !e.Fresh {
			return e
		}
	}
	return f.holds[0]
}

// next is the next moment in which something ends.
func (f *future) next() (next time.Time, ok bool) {
	see := func(t time.Time) {
		if t.After(f.now) && (!ok || t.Before(next)) {
			next, ok = t, true
		}
	}
	for _, h := range f.holds {
		end, _ := f.ends(h)
		see(end)
	}
	for _, i := range f.items {
		see(i.RestEnd())
		if !i.Leaving {
			see(i.Leaves())
		}
	}
	for _, w := range slices.Concat(f.line, f.lanes) {
		if f.silent(w.Node) {
			see(w.Record.Alive())
		}
	}
	for _, w := range f.lanes {
		see(f.s.patience(w))
	}
	if c := f.s.claim; c != nil && c.Wait != nil && f.silent(c.Wait.Node) {
		see(c.Wait.Record.Alive())
	}
	see(f.s.pauseEnds())
	return next, ok
}

// notice is the event of this moment if somebody in line notices it.
func (f *future) notice() *Event {
	grants, open := f.serve()
	if len(grants) == 0 && !f.own || len(grants) > 0 && f.change == nil && !f.now.Equal(f.s.At) {
		return nil
	}
	e := f.change
	if e == nil {
		e = &Event{At: f.now}
	}
	e.Grants, e.Open, e.If = grants[:min(len(grants), 10)], open, f.ifs
	return e
}

// flush is the end of a hold whose node is dead for the swarm: nothing else ends by itself before.
func (f *future) flush() *Event {
	if len(f.line)+len(f.lanes) == 0 {
		return nil
	}
	for _, h := range f.holds {
		n, process := f.s.nodes[h.Node], f.s.process(h)
		if !h.Deadline.IsZero() || process != Condemned && process != Zombie {
			continue
		}
		e := &Event{What: SwarmFlush, At: n.Ends, In: f.s.left(n.Ends), Claim: h.ID}
		if process == Zombie {
			e.If = []string{h.Node}
		}
		return e
	}
	return nil
}
