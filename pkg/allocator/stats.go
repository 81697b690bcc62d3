package allocator

import (
	"context"
	"iter"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/pkg/keyspace"
)

// What all primitives list.
type (
	// Holder is a hold as listings show it.
	Holder = berth.Holder
	// Waiter is a claim that waits in line, as listings show it.
	Waiter = berth.Waiter
)

// Stats is a pool at one moment. Free, Leased and Resting together are Resources,
// where nobody shares a resource; with MaxSharers, one that is leased and has room
// for more holders is among the free as well, and one that rests may be leased.
type Stats struct {
	// Name is the name of the pool.
	Name string
	// Resources is how many there are, those that are leaving included.
	Resources int
	// Free is how many the next claims may get.
	Free int
	// Leased is how many are held.
	Leased int
	// Resting is how many rest.
	Resting int
	// Leaving is how many of the leased ones leave when they come back.
	Leaving int
	// Holders is how many claims hold one.
	Holders int
	// Waiting is how many claims wait in line; some may have died there, and were not met yet.
	Waiting int
	// Expired is how many holds and resources have expired, and were
	// not dropped yet. They are not counted in the fields above.
	Expired int
}

// lookedInto is how many expired holds, rests that have ended and expired resources
// Stats looks into, of each.
const lookedInto = 1000

// Share is the leased part of the resources, 0 to 1; 0 without any.
func (s Stats) Share() float64 {
	if s.Resources == 0 {
		return 0
	}
	return float64(s.Leased) / float64(s.Resources)
}

// Stats counts, and only reads: it can be asked of a replica, by a user that may not
// write. The counts but Waiting are those that dropping what has expired would leave. Of
// more than 1000 expired holds, rests that have ended or expired resources, those beyond count as
// if they had not. It returns berth.ErrIncompatible or the server's error.
func (p *Pool[T]) Stats(ctx context.Context) (Stats, error) { return p.core.stats(ctx) }

// GC drops what has expired, and returns how many entries that were. Every call that
// writes drops some on its way; GC is for operators who want all of it done now. Its errors
// are those of Stats.
func (p *Pool[T]) GC(ctx context.Context) (int, error) {
	return p.core.client.node.SweepAll(ctx, p.core.name)
}

// Holders goes through the holds, in no order. It promises what SCAN promises: a
// hold that lasts from beginning to end is there, once. An
// error that names a claim says that what is stored of it is damaged; the listing
// goes on. It ends after any other error: berth.ErrIncompatible or the server's.
func (p *Pool[T]) Holders(ctx context.Context) iter.Seq2[berth.Holder, error] {
	return p.core.client.node.Holders(ctx, p.core.name)
}

// Waiters goes through the claims that wait, the first in line first. A claim
// that waits from beginning to end is there, once; what comes and goes meanwhile
// may be there or not. It goes on after a damaged claim, as Holders does, and ends
// after any other error: berth.ErrIncompatible or the server's.
func (p *Pool[T]) Waiters(ctx context.Context) iter.Seq2[berth.Waiter, error] {
	return p.core.client.node.Waiters(ctx, p.core.name)
}

// Stats goes through the named pools, or through all of the namespace that have
// resources or waiting claims, in no order. It promises what SCAN promises: a pool
// that has some from beginning to end is there, once. After an error it goes on where
// it can. It only reads. Errors are berth.ErrInvalidConfig for a bad name, berth.ErrIncompatible, or
// the server's.
func (c *Client) Stats(ctx context.Context, names ...string) iter.Seq2[Stats, error] {
	return c.listing(ctx).Stats(ctx, names...)
}

// Top returns the n pools with the largest Share, the largest first. Its errors
// are those of Stats.
func (c *Client) Top(ctx context.Context, n int) ([]Stats, error) { return c.listing(ctx).Top(ctx, n) }

func (c *Client) listing(ctx context.Context) line.Listing[Stats] {
	return line.Listing[Stats]{
		All: line.Names(ctx, c.redis, c.space, keyspace.Pool, c.cfg.CallTimeout), Share: Stats.Share,
		Read: func(ctx context.Context, name string) (Stats, error) {
			return (&core{client: c, name: name}).stats(ctx)
		},
		Named: func(name string) Stats { return Stats{Name: name} },
		Used:  func(s Stats) bool { return s.Resources > 0 || s.Waiting > 0 },
	}
}
