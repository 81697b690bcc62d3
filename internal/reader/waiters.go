package reader

import (
	"context"
	"iter"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/pkg/keyspace"
)

// WaitersPage reads the waiting claims of a name among up to so many places behind a cursor, "" for the first: in the
// order of the line, and then those who wait for one resource of a pool, by resources. Dead ones are left out. Ahead counts
// who lives from the line's first on, or from a resource's; but before the page dead ones, too. Its errors are those of
// HoldersPage.
func (r *Reader) WaitersPage(ctx context.Context, kind keyspace.Kind, name, cursor string, most int) (Page[berth.Waiter], error) {
	return page(ctx, r, "waiters", kind, name, cursor, func(t *turn, after *member) (Page[berth.Waiter], bool, error) {
		return t.waitersPage(after, min(most, Most))
	})
}

func (t *turn) waitersPage(after *member, most int) (found Page[berth.Waiter], still bool, err error) {
	text, thin, err := t.text()
	if err != nil {
		return found, false, err
	} else if thin {
		_, err := t.slight(text)
		return found, true, err
	}
	before, there, places, rank, more, err := t.members(after, most, 0, state.Holds-1)
	if err != nil || !there || len(places) == 0 {
		return found, true, err
	}
	var p trip
	fields, line := t.key(keyspace.StatePart), t.key(keyspace.LinePart)
	all := places
	places, claims, damaged := sound(places, claimPlaced)
	records, apart, ranks := p.fields(fields, "c:", claims...), -1, -1
	if all[len(all)-1].score > state.LastLane {
		apart, ranks = p.fields(fields, "q:", claims...), p.add("ZCOUNT", line, "-inf", "("+number(all[0].score))
	}
	values := p.marksLast(t)
	if err := t.ask(&p); err != nil {
		return found, false, err
	}
	now, _, err := t.read(&p, values)
	if err != nil {
		return found, false, err
	}
	w := waits{turn: t, ahead: int(rank)}
	if all[0].score > state.LastLane {
		w.ahead -= int(p.int(ranks))
	}
	w.take(places, claims, p.texts(records), p.texts(apart))
	found.Found = w.found
	for _, m := range damaged {
		found.Found = append(found.Found, Found[berth.Waiter]{Entry: berth.Waiter{ID: state.Brief(m.name)}, Err: state.Damaged(m.name), at: m})
	}
	if more {
		found.Next = cursorOf(all[len(all)-1])
	}
	return found, before.still(now), p.err
}

// waits are the waiting claims of a page.
type waits struct {
	*turn
	ahead int
	found []Found[berth.Waiter]
}

// take takes those that live.
func (w *waits) take(places []member, claims, records, apart []string) {
	for i, m := range places {
		if lane := m.score; i > 0 && lane > state.LastLane && lane != places[i-1].score {
			w.ahead = 0
		}
		if !state.Waits(records[i]) {
			continue
		}
		one, r, err := Waiter(w.name, claims[i], w.at(), records[i])
		readable := err == nil
		if !readable { // its id may be none of Berth's
			var unread error
			r, unread = state.ParseRecord(records[i])
			readable = unread == nil
		}
		if readable && !r.Alive().After(w.at()) {
			continue
		}
		if err == nil && m.score > state.LastLane && !elsewhere(m, records[i]) {
			one.BindWait, one.Resource, err = w.bindWait(apart[i])
		}
		one.Ahead = w.ahead
		w.ahead++
		w.found = append(w.found, Found[berth.Waiter]{one, err, r.Heard, m})
	}
}

// elsewhere says that a claim stands at another place than where it was met: one that has waited long enough for a
// resource stands in the line.
func elsewhere(met member, record string) bool {
	place, _, _ := state.PlaceOf(met.name)
	r, err := state.ParseRecord(record)
	return err == nil && r.Place != place
}

// bindWait is for how much longer a claim waits for one resource alone, and for which.
func (t *turn) bindWait(text string) (left time.Duration, resource string, err error) {
	ends, resource, err := state.ParseLane(text)
	if err != nil || ends == state.Forever {
		return berth.Forever, resource, err
	}
	return state.Millis(max(ends-t.now, 0)), resource, nil
}

// Waiters goes through the claims that wait, in the order of WaitersPage. A claim that waits from beginning to
// end is there, once. It goes on after a claim that is damaged, and ends after any other error, those of HoldersPage.
func (r *Reader) Waiters(ctx context.Context, kind keyspace.Kind, name string) iter.Seq2[berth.Waiter, error] {
	return all(func(cursor string) (Page[berth.Waiter], error) {
		return r.WaitersPage(ctx, kind, name, cursor, Most)
	}, func(w *berth.Waiter) string { return w.ID })
}
