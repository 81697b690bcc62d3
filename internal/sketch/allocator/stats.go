package allocator

import (
	"context"
	"iter"
)

// Stats is a pool at one moment.
type Stats struct {
	// Name is the name of the pool.
	Name string
	// Resources is how many there are: free, leased and resting.
	Resources int
	// Free is how many the next claims may get.
	Free int
	// Leased is how many are held.
	Leased int
	// Resting is how many rest.
	Resting int
	// Holders is how many claims hold one; more than Leased with MaxSharers.
	Holders int
	// Waiting is how many claims wait.
	Waiting int
	// Swept is how many expired entries this answer dropped.
	Swept int
}

// Share is the leased part of the resources, 0 without any.
func (s Stats) Share() float64 { return 0 }

// Stats reads the pool.
func (p *Pool[T]) Stats(ctx context.Context) (Stats, error) { return Stats{}, errSketch }

// Holders lists the holds, in no order.
func (p *Pool[T]) Holders(ctx context.Context) iter.Seq2[Holder, error] {
	return func(yield func(Holder, error) bool) { yield(Holder{}, errSketch) }
}

// Waiters lists the line, its first first.
func (p *Pool[T]) Waiters(ctx context.Context) iter.Seq2[Waiter, error] {
	return func(yield func(Waiter, error) bool) { yield(Waiter{}, errSketch) }
}

// Stats lists the given pools, or without names all that there are, in no
// order.
func (c *Client) Stats(ctx context.Context, names ...string) iter.Seq2[Stats, error] {
	return func(yield func(Stats, error) bool) { yield(Stats{}, errSketch) }
}

// Top returns the n pools with the largest Share, the largest first.
func (c *Client) Top(ctx context.Context, n int) ([]Stats, error) { return nil, errSketch }
