package qlock

import (
	"context"
	"iter"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/internal/reader"
	"github.com/berth-go/berth/pkg/keyspace"
)

// Stats is what a lock looked like at one moment.
type Stats struct {
	// Name is the lock's.
	Name string
	// Owner is whom the hold is for, "" if the lock is free. Where no owner was given,
	// Owner is the id of the claim.
	Owner string
	// Fence is the number of the grant, 0 if the lock is free.
	Fence int64
	// Left is how long the lock stays held if nothing renews it: what is left of
	// the entry that lasts longest; berth.Forever for no end.
	Left time.Duration
	// Holders is by how many entries the owner holds the lock, 0 if the lock is free.
	Holders int
	// Waiting is how many claims wait in line; some may have died there, and were not met yet.
	Waiting int
	// Reentry is about the entries after the first.
	Reentry Reentry
}

// Held says whether somebody holds the lock.
func (s Stats) Held() bool { return s.Holders > 0 }

// Reentry tells what an owner did on a lock that the owner held already.
type Reentry struct {
	// Count is how many entries were made after the first.
	Count int
	// WorkedThroughAt is when the last WorkThrough was granted, by the server's
	// clock; zero for never.
	WorkedThroughAt time.Time
	// Extended is by how much ExtendAndWorkThrough has moved the deadline in
	// all, before anything was given back.
	Extended time.Duration
	// LastLease is the lease of the last ExtendAndWorkThrough.
	LastLease time.Duration
	// ExtendedAt is when that one was granted, by the server's clock; zero for
	// never.
	ExtendedAt time.Time
}

// Stats reads a lock, and only reads. It returns berth.ErrInvalidConfig for a bad name,
// berth.ErrIncompatible, or the server's error. An error that names a claim says that
// what is stored of one of the entries is damaged.
func (o *Operator) Stats(ctx context.Context, name string) (Stats, error) {
	if err := keyspace.CheckName(name); err != nil {
		return Stats{Name: name}, err
	}
	return o.stats(ctx, name)
}

func (o *Operator) stats(ctx context.Context, name string) (Stats, error) {
	stats, entries, err := read(ctx, o.client.node.Load().Look, name)
	for _, e := range entries {
		if err == nil {
			err = e.Err
		}
	}
	return stats, err
}

// All goes through the locks of the namespace that somebody holds or waits for, in no
// order. It promises what SCAN promises: a lock that is in use from beginning to end is
// there, once. It only reads. After an error it goes on where it can; errors are those
// of Stats.
func (o *Operator) All(ctx context.Context) iter.Seq2[Stats, error] {
	return line.All(ctx, o.client.node.Load().Calls, o.stats, func(s Stats) bool { return s.Held() || s.Waiting > 0 })
}

// Holders goes through the entries by which the owner holds a lock, the outermost first.
// They are read at one moment. An error that names a claim says that what is stored of it
// is damaged; the listing goes on. It ends after any other error: those of Stats.
func (o *Operator) Holders(ctx context.Context, name string) iter.Seq2[berth.Holder, error] {
	return o.client.node.Load().Look.Holders(ctx, keyspace.Lock, name)
}

// Waiters goes through the claims that wait for a lock, the first in line first. A claim
// that waits from beginning to end is there, once; what comes and goes meanwhile may be
// there or not. It goes on after a damaged claim, as Holders does, and its errors are
// those of Holders.
func (o *Operator) Waiters(ctx context.Context, name string) iter.Seq2[berth.Waiter, error] {
	return o.client.node.Load().Look.Waiters(ctx, keyspace.Lock, name)
}

// read reads a lock with the entries of its owner, the outermost first.
func read(ctx context.Context, from *reader.Reader, name string) (Stats, []reader.Found[berth.Holder], error) {
	n, entries, err := from.Entries(ctx, name)
	stats := Stats{Name: name, Holders: len(entries), Waiting: n.Waiting}
	if l := n.Lock; l != nil {
		stats.Owner, stats.Left = l.Owner, l.Left
		stats.Reentry = Reentry{
			Count: l.Reentries, WorkedThroughAt: l.WorkedThroughAt, Extended: l.Extended, LastLease: l.LastLease, ExtendedAt: l.ExtendedAt,
		}
	}
	for _, e := range entries {
		if e.Err == nil {
			stats.Fence = e.Entry.Fence // all have the same
		}
	}
	return stats, entries, err
}
