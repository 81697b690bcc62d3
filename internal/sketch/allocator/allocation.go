package allocator

import (
	"context"
	"time"

	"github.com/berth-go/berth"
)

var _ berth.Hold = (*Allocation[string])(nil)

// Allocation is a hold on a resource of a pool. Its methods may be called by
// many goroutines at once.
type Allocation[T any] struct{}

// ID is the id of the claim.
func (a *Allocation[T]) ID() string { return "" }

// Name is the name of the pool.
func (a *Allocation[T]) Name() string { return "" }

// Resource is the key of the resource.
func (a *Allocation[T]) Resource() string { return "" }

// Value is what Open made of the resource.
func (a *Allocation[T]) Value() T {
	var none T
	return none
}

// Fence is the number of the grant; after Swap, that of the new resource.
func (a *Allocation[T]) Fence() int64 { return 0 }

// Waited is how long the acquiring call took.
func (a *Allocation[T]) Waited() time.Duration { return 0 }

// Holder is the hold as listings show it, from what this process knows.
func (a *Allocation[T]) Holder() Holder { return Holder{} }

// Context carries the values of the acquiring ctx and the claim's owner, but
// not the ctx's end; it ends with the hold, and its cause says why.
func (a *Allocation[T]) Context() context.Context { return context.Background() }

// Left is how long the holder may still believe in the allocation if nothing renews
// it: berth.Forever for no end, 0 once it has ended.
func (a *Allocation[T]) Left() time.Duration { return 0 }

// Within returns a ctx that ends with ctx or with the hold, whichever comes
// first, and whose cause then says why; cancel it when it is not needed any
// more. It carries the claim's owner. Do runs its function within the hold.
func (a *Allocation[T]) Within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithCancel(ctx)
}

// Done is closed when the hold has ended.
func (a *Allocation[T]) Done() <-chan struct{} { return nil }

// Err is nil while the hold lives; then ErrLost, ErrExpired, ErrReleased or
// ErrClosed.
func (a *Allocation[T]) Err() error { return errSketch }

// Release gives the resource back; it rests if it has to. It works after ctx
// has ended, for at most CleanupTimeout more, and is nil ever after it has
// succeeded once. It returns ErrExpired, ErrLost or ErrNotHeld if the hold had
// ended before.
func (a *Allocation[T]) Release(ctx context.Context) error { return errSketch }

// Rest makes the resource rest for d, rounded up to the millisecond, when this
// hold ends by Release or Swap, if that is longer than the pool's Cooldown;
// berth.Forever is until somebody ends it by Pool.Rest. The last call counts. It
// sends nothing.
func (a *Allocation[T]) Rest(d time.Duration, reason string) {}

// Swap gives the resource back and takes the next one, in one step; the claim,
// its lease and the handle stay, Resource, Value and Fence change. It never
// waits and never passes the line: if nothing is free or others wait, it
// matches ErrBusy and everything stays as it is.
func (a *Allocation[T]) Swap(ctx context.Context) error { return errSketch }

// Renew sets the end of the lease anew, counted from now. It returns ErrExpired
// or ErrNotHeld if the hold has ended.
func (a *Allocation[T]) Renew(ctx context.Context) error { return errSketch }

// Detach stops renewing and keeps the hold until its lease ends, also through
// the client's Close. Then the hold is the token's: Release on this handle does
// nothing and is nil, so that a deferred one need not be taken back.
func (a *Allocation[T]) Detach(ctx context.Context) (berth.Token, error) {
	return berth.Token{}, errSketch
}
