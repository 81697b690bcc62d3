package inspect

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/berth-go/berth/internal/reader"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/pkg/keyspace"
)

// happens notes a change of this moment. The end of the explained claim goes before others.
func (f *future) happens(what What, at time.Time, claim, resource string) {
	own := claim != "" && claim == f.claim
	if f.change == nil || own && !f.own {
		f.change = &Event{What: what, At: at, In: at.Sub(f.s.At), Claim: claim, Resource: resource}
	}
	f.own = f.own || own
}

// needs notes a node of which nothing may be heard, "" for none.
func (f *future) needs(id string) {
	if id != "" && !f.s.nodes[id].Condemned && !slices.Contains(f.ifs, id) {
		f.ifs = append(f.ifs, id)
	}
}

func (f *future) due(t time.Time) bool { return !t.IsZero() && !t.After(f.now) }

// pass has everything end whose time has come, in the order in which a sweep does.
func (f *future) pass() {
	f.change, f.own = nil, false
	f.work += len(f.holds) + len(f.line) + len(f.lanes) + len(f.items)
	f.passHolds()
	f.passItems()
	if f.s.pauseEnds().Equal(f.now) {
		f.happens(PauseEnds, f.now, "", "")
	}
	f.passWaits()
	f.passLanes()
}

func (f *future) paused() bool { return f.s.pauseEnds().After(f.now) }

func (f *future) passHolds() {
	var over []*reader.Held
	for _, h := range f.holds {
		if end, unless := f.ends(h); f.due(end) {
			over = append(over, h)
			f.needs(unless)
		}
	}
	for _, h := range over {
		end, unless := f.ends(h)
		what := LeaseEnds
		if end.Equal(h.Record.Limit) {
			what = MaxHoldEnds
		}
		if f.s.Kind == keyspace.Lock && h == f.outer() && renews(&h.Holder) && unless == "" && len(over) < len(f.holds) {
			f.limit = end // the entries that stay have got another deadline by then
		}
		f.happens(what, end, h.ID, h.Resource)
	}
	for _, h := range over {
		f.over(h)
	}
}

// over has a hold have ended now.
func (f *future) over(h *reader.Held) {
	f.holds = slices.DeleteFunc(f.holds, func(other *reader.Held) bool { return other.ID == h.ID })
	f.used -= max(h.Weight, 1)
	f.back(h)
}

// back has the resource of a hold that has ended now come back.
func (f *future) back(h *reader.Held) {
	i := f.items[h.Resource]
	if i == nil {
		return
	}
	was, now := i.Item, f.now.UnixMilli()
	own := state.Settings{Cooldown: i.Cooldown}
	if !i.Return(h.ID, &h.Wants, own, own, now, now) {
		return // a shared hold keeps nothing from anybody
	}
	if was.Pending > 0 && !f.watched() {
		f.limit = f.now // the rest that was asked for meanwhile begins when somebody looks
	}
	if i.Leaving {
		i.Absent, i.Ends = len(i.Claims) == 0, was.Ends
	} else if i.Ends != was.Ends {
		f.by[h.Resource] = h.ID
	}
	f.listed(h.Resource, i)
}

// watched says that a process that waits looks in this moment. During a pause it does not.
func (f *future) watched() bool {
	return !f.paused() &&
		slices.ContainsFunc(slices.Concat(f.line, f.lanes), func(w *reader.Place) bool { return !f.silent(w.Node) })
}

// listed keeps the order in which resources came free.
func (f *future) listed(key string, i *reader.Item) {
	known := slices.Contains(f.order, key)
	switch {
	case i.Free() && !known:
		f.order = append(f.order, key)
	case !i.Free() && known:
		f.order = slices.DeleteFunc(f.order, func(other string) bool { return other == key })
	}
}

func (f *future) passItems() {
	for _, key := range f.keys {
		i := f.items[key]
		if end := i.RestEnd(); f.due(end) {
			i.Ends = 0
			f.happens(RestEnds, end, f.by[key], key)
		}
		if end := i.Leaves(); f.due(end) && !i.Leaving {
			i.Leaving = true
			f.happens(LeavesPool, end, "", key)
			i.Absent = len(i.Claims) == 0
		}
		f.listed(key, i)
	}
}

// passLanes has those leave who asked by its key for a resource that is about to leave, or has; who is bound to it
// takes any from then on. In a pool that has not been filled it may still come, and during a pause nobody looks.
func (f *future) passLanes() {
	if !f.s.Filled || f.paused() {
		return
	}
	for _, w := range slices.Clone(f.lanes) {
		if i := f.items[w.Resource]; i == nil || !i.Leaving && !i.Absent {
			continue
		}
		if w.Wants.Resource != "" {
			f.lanes = without(f.lanes, w)
		} else {
			f.moves(w)
		}
		if w.ID == f.claim {
			f.happens(LeavesPool, f.now, w.ID, w.Resource)
		}
	}
}

// moves has a claim that waited for one resource stand in the line.
func (f *future) moves(w *reader.Place) {
	f.lanes = without(f.lanes, w)
	f.line = append(f.line, w)
	slices.SortStableFunc(f.line, compare)
}

// order is by what the line, and lanes with it, are sorted.
func order(w *reader.Place) string { return fmt.Sprintf("%03d%s-%s", w.Lane, w.Place, w.ID) }

// compare is by order.
func compare(w, other *reader.Place) int {
	if len(w.Place) != len(other.Place) || min(w.Lane, other.Lane) < 0 || max(w.Lane, other.Lane) > 999 {
		return cmp.Compare(order(w), order(other))
	}
	return cmp.Or(cmp.Compare(w.Lane, other.Lane), cmp.Compare(w.Place, other.Place), cmp.Compare(w.ID, other.ID))
}

func without(waits []*reader.Place, w *reader.Place) []*reader.Place {
	return slices.DeleteFunc(waits, func(other *reader.Place) bool { return other == w })
}

func (f *future) passWaits() {
	for _, w := range slices.Clone(f.lanes) {
		if end := f.s.patience(w); f.due(end) {
			f.moves(w)
			f.happens(BindWaitEnds, end, w.ID, w.Resource)
		}
	}
	waiting := slices.Concat(f.line, f.lanes)
	if c := f.s.claim; c != nil && c.Wait != nil {
		waiting = append(waiting, c.Wait)
	}
	for _, w := range waiting {
		if end := w.Record.Alive(); f.due(end) && (f.silent(w.Node) || !end.After(f.s.At)) {
			f.line, f.lanes = without(f.line, w), without(f.lanes, w)
			if end.After(f.s.At) {
				f.needs(w.Node)
				f.happens(ClaimLeaves, end, w.ID, "")
			}
		}
	}
}
