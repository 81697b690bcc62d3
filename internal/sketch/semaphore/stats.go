package semaphore

import (
	"context"
	"iter"
)

// Stats is a semaphore at one moment.
type Stats struct {
	// Name is the name of the semaphore.
	Name string
	// Capacity is the stored capacity, 0 for an idle name that is forgotten.
	Capacity int
	// Held is how much of the capacity is held.
	Held int
	// Holders is how many claims hold it.
	Holders int
	// Waiting is how many claims wait.
	Waiting int
	// Swept is how many expired entries this answer dropped.
	Swept int
}

// Available is how much of the capacity is free, never below 0.
func (s Stats) Available() int { return 0 }

// Share is the held part of the capacity; above 1 after a resize below what is
// held, 0 without a capacity.
func (s Stats) Share() float64 { return 0 }

// ResizeOptions are the settings of Resize. Nil stands for the defaults.
type ResizeOptions struct {
	// Keep remembers the capacity for ever, idle or not. Default false.
	Keep bool
}

// Stats reads the semaphore.
func (s *Semaphore) Stats(ctx context.Context) (Stats, error) { return Stats{}, errSketch }

// Resize stores another capacity, at least 1. Nothing that is held is taken
// away; a waiting claim that has become too heavy ends with ReasonTooHeavy.
func (s *Semaphore) Resize(ctx context.Context, capacity int, opts *ResizeOptions) error {
	return errSketch
}

// Holders lists the holds, in no order.
func (s *Semaphore) Holders(ctx context.Context) iter.Seq2[Holder, error] {
	return func(yield func(Holder, error) bool) { yield(Holder{}, errSketch) }
}

// Waiters lists the line, its first first.
func (s *Semaphore) Waiters(ctx context.Context) iter.Seq2[Waiter, error] {
	return func(yield func(Waiter, error) bool) { yield(Waiter{}, errSketch) }
}

// Stats lists the given semaphores, or without names all that are not idle, in
// no order.
func (c *Client) Stats(ctx context.Context, names ...string) iter.Seq2[Stats, error] {
	return func(yield func(Stats, error) bool) { yield(Stats{}, errSketch) }
}

// Top returns the n semaphores with the largest Share, the largest first.
func (c *Client) Top(ctx context.Context, n int) ([]Stats, error) { return nil, errSketch }
