package semaphore

import (
	"context"
	"iter"

	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/pkg/keyspace"
)

// Stats is what a semaphore looked like at one moment.
type Stats struct {
	// Name is the semaphore's.
	Name string
	// Capacity is the stored capacity. Where none is stored, Semaphore.Stats says that
	// of the handle, and Client.Stats 0: not known.
	Capacity int
	// Held is the weight of all permits together.
	Held int
	// Holders is how many permits that is.
	Holders int
	// Waiting is how many claims wait in line; some may have died there, and were not met yet.
	Waiting int
	// Expired is how many permits have expired, and were not dropped yet. They are not
	// counted in the fields above.
	Expired int
}

// Known says whether the capacity is known.
func (s Stats) Known() bool { return s.Capacity > 0 }

// Available is how much of the capacity is free; 0 where the capacity is not known,
// see Known.
func (s Stats) Available() int { return max(0, s.Capacity-s.Held) }

// Share is how much of the capacity is held, 0 to 1; above 1 after a resize
// below what is held.
func (s Stats) Share() float64 {
	if !s.Known() {
		return 0
	}
	return float64(s.Held) / float64(s.Capacity)
}

// Stats counts, and only reads: it can be asked of a replica, by a user that may not
// write. Of more than 1000 expired permits those beyond count in Held with all but 1
// of their weight. It returns berth.ErrIncompatible or the server's error.
func (s *Semaphore) Stats(ctx context.Context) (Stats, error) {
	stats, err := s.client.stats(ctx, s.name)
	if err == nil && !stats.Known() {
		stats.Capacity = s.capacity
	}
	return stats, err
}

func (c *Client) stats(ctx context.Context, name string) (Stats, error) {
	n, err := c.node.Count(ctx, name)
	if err != nil {
		return Stats{}, err
	}
	return Stats{
		Name: name, Capacity: n.Capacity, Held: n.Held, Holders: n.Holders, Waiting: n.Waiting, Expired: n.Expired,
	}, nil
}

// Stats goes through the named semaphores, or through all of the namespace in
// which anything is held or waits, in no order. It promises what SCAN promises:
// a semaphore that is in use from beginning to end is there, once. After an
// error it goes on where it can. It only reads. Errors are berth.ErrInvalidConfig for a bad
// name, berth.ErrIncompatible, or the server's.
func (c *Client) Stats(ctx context.Context, names ...string) iter.Seq2[Stats, error] {
	return c.listing(ctx).Stats(ctx, names...)
}

// Top returns the n semaphores of which the largest share is held, the fullest
// first. Its errors are those of Stats.
func (c *Client) Top(ctx context.Context, n int) ([]Stats, error) { return c.listing(ctx).Top(ctx, n) }

func (c *Client) listing(ctx context.Context) line.Listing[Stats] {
	return line.Listing[Stats]{
		All: line.Names(ctx, c.redis, c.space, keyspace.Sem, c.cfg.CallTimeout), Read: c.stats, Share: Stats.Share,
		Named: func(name string) Stats { return Stats{Name: name} },
		Used:  func(s Stats) bool { return s.Holders > 0 || s.Waiting > 0 },
	}
}
