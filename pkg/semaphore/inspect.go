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
	// Waiting is how many claims wait in line. It may include claims of dead processes
	// that no script has dropped yet.
	Waiting int
	// Expired is how many permits have expired and were not dropped yet. The fields
	// above do not count them.
	Expired int
}

// Available is how much of the capacity is free; 0 where no capacity is stored.
func (s Stats) Available() int { return max(0, s.Capacity-s.Held) }

// Share is the part of the capacity that is held: 0 to 1, above 1 after a resize below
// what is held, and 0 where no capacity is stored.
func (s Stats) Share() float64 {
	if s.Capacity == 0 {
		return 0
	}
	return float64(s.Held) / float64(s.Capacity)
}

// Stats counts what a semaphore has. It only reads, so a replica can answer it, and a
// user that may not write can call it. Beyond 1000 expired permits that were not
// dropped yet, Held may be too high. Stats returns berth.ErrInvalidConfig for a bad name,
// berth.ErrIncompatible, or the server's error.
func (o *Operator) Stats(ctx context.Context, name string) (Stats, error) {
	if err := keyspace.CheckName(name); err != nil {
		return Stats{Name: name}, err
	}
	return o.stats(ctx, name)
}

func (o *Operator) stats(ctx context.Context, name string) (Stats, error) {
	n, err := o.client.node.Look.Name(ctx, keyspace.Sem, name)
	if err != nil {
		return Stats{Name: name}, err
	}
	return Stats{
		Name: name, Capacity: n.Capacity, Held: n.Held, Holders: n.Holders, Waiting: n.Waiting, Expired: n.Expired,
	}, nil
}

// All goes through the semaphores of the namespace in which anything is held or waits,
// in no order. As with SCAN, a semaphore that is in use from beginning to end is yielded,
// once. All only reads. After an error it goes on where it can; its errors are
// berth.ErrIncompatible or the server's.
func (o *Operator) All(ctx context.Context) iter.Seq2[Stats, error] {
	return line.All(ctx, o.client.node.Calls, o.stats, func(s Stats) bool { return s.Holders > 0 || s.Waiting > 0 })
}

// Holders goes through the held permits of a semaphore, in no order. As with SCAN, a
// permit that is held from beginning to end is yielded, once. An error that names a claim
// says that the claim's record is damaged; the listing goes on. Any other error ends the
// listing: berth.ErrInvalidConfig for a bad name, berth.ErrIncompatible, or the server's.
func (o *Operator) Holders(ctx context.Context, name string) iter.Seq2[berth.Holder, error] {
	return o.client.node.Look.Holders(ctx, keyspace.Sem, name)
}

// Waiters goes through the waiting claims of a semaphore, the first in line first. A
// claim that waits from beginning to end is yielded, once; others may be. Its errors are
// those of Holders, and it goes on after a damaged claim, too.
func (o *Operator) Waiters(ctx context.Context, name string) iter.Seq2[berth.Waiter, error] {
	return o.client.node.Look.Waiters(ctx, keyspace.Sem, name)
}
