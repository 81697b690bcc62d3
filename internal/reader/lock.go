package reader

import (
	"cmp"
	"context"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/pkg/keyspace"
)

// entries are the claims of the holds to read: of a lock the entries of its owner, up to k, those without an own
// call last. Without a group the first hold is the only entry.
func (f *fat) entries() (group *state.Group, claims []string) {
	group = f.before.group
	switch {
	case f.kind != keyspace.Lock:
		return nil, claimsOf(f.holds)
	case f.before.values.Used <= 0:
		return nil, nil
	case group == nil:
		return nil, claimsOf(f.holds)
	}
	for _, fresh := range []bool{false, true} {
		for _, e := range group.Entries {
			if e.Fresh == fresh {
				claims = append(claims, e.Claim)
			}
		}
	}
	if len(claims) > f.k {
		f.n.Partial, claims = true, claims[:f.k]
	}
	return group, claims
}

// lock tells of the entries that were found.
func (f *fat) lock(group *state.Group, found []Found[berth.Holder]) {
	if !f.n.Partial {
		f.n.Holders = len(found)
	}
	if len(found) > 0 {
		f.n.Held, f.n.Lock = 1, lockOf(group, found)
	} else {
		f.n.Holders = 0
	}
}

// lockOf tells of a hold by its entries, the outermost first.
func lockOf(group *state.Group, entries []Found[berth.Holder]) *berth.LockInfo {
	l := &berth.LockInfo{Claim: entries[0].Entry.ID, Label: entries[0].Entry.Label}
	if group != nil {
		l.Reentries, l.WorkedThroughAt = int(group.Count), state.Instant(group.WorkedAt)
		l.Extended, l.LastLease = state.Millis(group.Extended), state.Millis(group.Last)
		l.ExtendedAt = state.Instant(group.ExtendedAt)
	}
	for _, e := range entries {
		l.Left = max(l.Left, e.Entry.Left)
		if e.Err == nil && l.Owner == "" { // all have the same
			l.Owner = cmp.Or(e.Entry.Owner, e.Entry.ID)
		}
	}
	return l
}

// Entries reads a lock with the entries of its owner, the outermost first. Its errors are those of Name.
func (r *Reader) Entries(ctx context.Context, name string) (Row, []Found[berth.Holder], error) {
	n, err := r.Name(ctx, keyspace.Lock, name)
	return n, n.Entries, err
}
