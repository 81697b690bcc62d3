package qlock

import (
	"cmp"
	"context"
	"iter"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/scriptkit"
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
	stats, entries, err := o.client.node.Load().read(ctx, name)
	for _, e := range entries {
		if err == nil {
			err = e.err
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
	return func(yield func(berth.Holder, error) bool) {
		err := keyspace.CheckName(name)
		var entries []foundEntry
		if err == nil {
			_, entries, err = o.client.node.Load().read(ctx, name)
		}
		if err != nil {
			yield(berth.Holder{}, err)
			return
		}
		for _, e := range entries {
			if !yield(e.Holder, e.err) {
				return
			}
		}
	}
}

// Waiters goes through the claims that wait for a lock, the first in line first. A claim
// that waits from beginning to end is there, once; what comes and goes meanwhile may be
// there or not. It goes on after a damaged claim, as Holders does, and its errors are
// those of Holders.
func (o *Operator) Waiters(ctx context.Context, name string) iter.Seq2[berth.Waiter, error] {
	return o.client.node.Load().Waiters(ctx, name)
}

// names goes through the names that the server knows, idle ones too.
func (c *Client) names(ctx context.Context) iter.Seq2[string, error] {
	return line.Names(ctx, c.redis, c.space, keyspace.Lock, c.cfg.CallTimeout)
}

// foundEntry is one entry of a hold; of one that is damaged only its ID is known.
type foundEntry struct {
	berth.Holder
	err error
}

// read runs lock_info. The entries are the outermost first.
func (n *node) read(ctx context.Context, name string) (stats Stats, entries []foundEntry, err error) {
	stats.Name = name
	r, err := n.Run(ctx, n.info, scriptkit.Bounded, name)
	if err != nil {
		return stats, nil, err
	}
	if r.Status() != statusInfo {
		return stats, nil, line.Unexpected(name, &r)
	}
	now := time.UnixMilli(r.Int(1))
	stats.Waiting = int(r.Int(2))
	stats.Reentry = Reentry{
		Count: int(r.Int(3)), WorkedThroughAt: moment(r.Int(4)), Extended: state.Millis(r.Int(5)),
		LastLease: state.Millis(r.Int(6)), ExtendedAt: moment(r.Int(7)),
	}
	for i := 8; i < r.Len(); i += 3 {
		h, err := line.Holder(name, r.Str(i), now, r.Int(i+1), r.Str(i+2))
		entries = append(entries, foundEntry{h, err})
		if stats.Holders++; err != nil {
			continue
		}
		stats.Left = max(stats.Left, h.Left)
		if stats.Fence == 0 { // all have the same, and the same owner
			stats.Fence, stats.Owner = h.Fence, cmp.Or(h.Owner, h.ID)
		}
	}
	return stats, entries, r.Err()
}

// moment reads a time of the server, where 0 is none.
func moment(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}
