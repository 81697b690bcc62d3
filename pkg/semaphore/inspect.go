package semaphore

import (
	"context"
	"iter"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/pkg/keyspace"
)

// Stats is what a semaphore looked like at one moment.
type Stats struct {
	// Name is the semaphore's.
	Name string
	// Capacity is the stored capacity, 0 where none is stored.
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

// Available is how much of the capacity is free; 0 where no capacity is stored.
func (s Stats) Available() int { return max(0, s.Capacity-s.Held) }

// Share is how much of the capacity is held, 0 to 1; above 1 after a resize
// below what is held, and 0 where no capacity is stored.
func (s Stats) Share() float64 {
	if s.Capacity == 0 {
		return 0
	}
	return float64(s.Held) / float64(s.Capacity)
}

// Stats counts, and only reads: it can be asked of a replica, by a user that may not
// write. Of more than 1000 expired permits those beyond count in Held with all but 1
// of their weight. It returns berth.ErrInvalidConfig for a bad name,
// berth.ErrIncompatible, or the server's error.
func (o *Operator) Stats(ctx context.Context, name string) (Stats, error) {
	if err := keyspace.CheckName(name); err != nil {
		return Stats{Name: name}, err
	}
	return o.stats(ctx, name)
}

func (o *Operator) stats(ctx context.Context, name string) (Stats, error) {
	n, err := o.client.node.Count(ctx, name)
	if err != nil {
		return Stats{Name: name}, err
	}
	return Stats{
		Name: name, Capacity: n.Capacity, Held: n.Held, Holders: n.Holders, Waiting: n.Waiting, Expired: n.Expired,
	}, nil
}

// All goes through the semaphores of the namespace in which anything is held or waits,
// in no order. It promises what SCAN promises: a semaphore that is in use from
// beginning to end is there, once. It only reads. After an error it goes on where it
// can; errors are berth.ErrIncompatible or the server's.
func (o *Operator) All(ctx context.Context) iter.Seq2[Stats, error] {
	return line.All(ctx, o.client.node.Calls, o.stats, func(s Stats) bool { return s.Holders > 0 || s.Waiting > 0 })
}

// Holders goes through the permits of a semaphore that are held, in no order. It
// promises what SCAN promises: a permit that is held from beginning to end is there,
// once. An error that names a claim says that what is stored of it is damaged; the
// listing goes on. It ends after any other error: berth.ErrInvalidConfig for a bad
// name, berth.ErrIncompatible, or the server's.
func (o *Operator) Holders(ctx context.Context, name string) iter.Seq2[berth.Holder, error] {
	return o.client.node.Holders(ctx, name)
}

// Waiters goes through the claims that wait, the first in line first. A claim
// that waits from beginning to end is there, once; what comes and goes meanwhile
// may be there or not. It goes on after a damaged claim, as Holders does, and its
// errors are those of Holders.
func (o *Operator) Waiters(ctx context.Context, name string) iter.Seq2[berth.Waiter, error] {
	return o.client.node.Waiters(ctx, name)
}
