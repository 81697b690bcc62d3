package reader

import (
	"context"
	"iter"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/pkg/keyspace"
)

// HoldersPage reads up to so many holds of a name behind a cursor, "" for the first: those that end first; of a
// lock its entries, the outermost first, on one page. Its errors are berth.ErrInvalidConfig for a bad name or
// cursor, berth.ErrIncompatible, state.ErrDamaged for a name, or the server's.
func (r *Reader) HoldersPage(ctx context.Context, kind keyspace.Kind, name, cursor string, most int) (Page[berth.Holder], error) {
	if kind == keyspace.Lock {
		n, entries, err := r.Entries(ctx, name)
		return Page[berth.Holder]{Found: entries, Now: n.At, Replica: n.Replica, Moving: n.Moving}, err
	}
	return page(ctx, r, "holders", kind, name, cursor, func(t *turn, after *member) (Page[berth.Holder], bool, error) {
		return t.holdersPage(after, min(most, Most))
	})
}

// page reads a page: the first one again where something moves meanwhile.
func page[E any](ctx context.Context, r *Reader, what string, kind keyspace.Kind, name, cursor string,
	try func(t *turn, after *member) (Page[E], bool, error),
) (found Page[E], err error) {
	var after *member
	most := tries
	if cursor != "" {
		m, err := memberOf(cursor)
		if err != nil {
			return found, err
		}
		after, most = &m, 1
	}
	t, moving, err := r.alone(ctx, what, kind, name, most, func(t *turn) (still bool, err error) {
		found, still, err = try(t, after)
		return still, err
	})
	if err != nil {
		return Page[E]{}, err
	}
	found.Now, found.Replica, found.Moving = t.at(), t.replica, moving
	return found, nil
}

func (t *turn) holdersPage(after *member, most int) (found Page[berth.Holder], still bool, err error) {
	text, thin, err := t.text()
	if err != nil {
		return found, false, err
	} else if thin {
		n, err := t.slight(text)
		if after == nil {
			found.Found = n.Entries
		}
		return found, true, err
	}
	before, there, holds, _, more, err := t.members(after, most, state.Holds+t.now+1, state.Holds+state.Forever)
	if err != nil || !there {
		return found, true, err
	}
	f := fat{turn: t, state: t.key(keyspace.StatePart), line: t.key(keyspace.LinePart)}
	var p trip
	all := holds
	holds, claims, damaged := sound(holds, claimHeld)
	records, scores, resources := p.fields(f.state, "c:", claims...), p.scores(f.line, "h:", claims...), -1
	if t.kind == keyspace.Pool {
		resources = p.fields(f.state, "r:", claims...)
	}
	values := p.marksLast(t)
	if err := t.ask(&p); err != nil {
		return found, false, err
	}
	now, _, err := t.read(&p, values)
	if err != nil {
		return found, false, err
	}
	held := map[string]string{}
	for i, key := range p.texts(resources) {
		held[claims[i]] = resource(key)
	}
	found.Found = f.holders(claims, p.texts(records), p.at(scores))
	places := map[string]member{}
	for _, m := range holds {
		places[m.name] = m
	}
	for i := range found.Found {
		f := &found.Found[i]
		f.Entry.Resource, f.at = held[f.Entry.ID], places[f.at.name]
	}
	for _, m := range damaged {
		found.Found = append(found.Found, Found[berth.Holder]{Entry: berth.Holder{ID: state.Brief(m.name)}, Err: state.Damaged(m.name), at: m})
	}
	if more {
		found.Next = cursorOf(all[len(all)-1])
	}
	return found, before.still(now), p.err
}

// members reads the marks of a name, and the members of its line between two scores, behind one or from the
// first on; rank is that of the first of them.
func (t *turn) members(after *member, most int, from, to int64) (before marks, there bool, found []member, rank int64, more bool, err error) {
	var p trip
	line := t.key(keyspace.LinePart)
	values, first := p.marks(t), -1
	if after == nil {
		first = p.ranged(line, from, to, min(most+1, Most))
	}
	if err := t.ask(&p); err != nil {
		return before, false, nil, 0, false, err
	}
	if before, there, err = t.read(&p, values); err != nil || !there {
		return before, false, nil, 0, false, err
	}
	if found = p.members(first); after != nil {
		found, rank, more, err = t.behind(line, *after, to, most)
	} else {
		if more = len(found) == min(most+1, Most); more {
			found = found[:min(most, len(found))]
		}
	}
	if p.err != nil {
		err = p.err
	}
	return before, err == nil, found, rank, more, err
}

// Holders goes through the holds of a name, those that end first; of a lock through its entries, the outermost first.
// A hold that lasts from the beginning to the end is there, once; above 1000 holds one whose deadline comes
// nearer meanwhile may be missed. It goes on after a claim that is damaged, and ends after any other error, those of
// HoldersPage.
func (r *Reader) Holders(ctx context.Context, kind keyspace.Kind, name string) iter.Seq2[berth.Holder, error] {
	return all(func(cursor string) (Page[berth.Holder], error) {
		return r.HoldersPage(ctx, kind, name, cursor, Most)
	}, func(h *berth.Holder) string { return h.ID })
}

// all goes through the pages of a listing, and yields each entry once.
func all[E any](read func(cursor string) (Page[E], error), id func(*E) string) iter.Seq2[E, error] {
	return func(yield func(E, error) bool) {
		seen := make(map[string]bool)
		for cursor := ""; ; {
			page, err := read(cursor)
			if err != nil {
				var none E
				yield(none, err)
				return
			}
			for i := range page.Found {
				found := &page.Found[i]
				key := id(&found.Entry)
				if !seen[key] && !yield(found.Entry, found.Err) {
					return
				}
				seen[key] = true
			}
			if cursor = page.Next; cursor == "" {
				return
			}
		}
	}
}
