package semaphore

import (
	"context"
	"time"

	"github.com/berth-go/berth"
)

var _ berth.Hold = (*Permit)(nil)

// Permit is a hold on a semaphore. Its methods may be called by many
// goroutines at once.
type Permit struct{}

// ID is the id of the claim.
func (p *Permit) ID() string { return "" }

// Name is the name of the semaphore.
func (p *Permit) Name() string { return "" }

// Fence is the number of the grant.
func (p *Permit) Fence() int64 { return 0 }

// Weight is how much of the capacity the permit takes.
func (p *Permit) Weight() int { return 0 }

// Waited is how long the acquiring call took.
func (p *Permit) Waited() time.Duration { return 0 }

// Holder is the hold as listings show it, from what this process knows.
func (p *Permit) Holder() Holder { return Holder{} }

// Context carries the values of the acquiring ctx and the claim's owner, but
// not the ctx's end; it ends with the hold, and its cause says why.
func (p *Permit) Context() context.Context { return context.Background() }

// Within returns a ctx that ends with ctx or with the hold, whichever comes
// first, and whose cause then says why; cancel it when it is not needed any
// more. It carries the claim's owner. Do runs its function within the hold.
func (p *Permit) Within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithCancel(ctx)
}

// Done is closed when the hold has ended.
func (p *Permit) Done() <-chan struct{} { return nil }

// Err is nil while the hold lives; then ErrLost, ErrExpired, ErrReleased or
// ErrClosed.
func (p *Permit) Err() error { return errSketch }

// Release gives the permit back. It works after ctx has ended, for at most
// CleanupTimeout more, and is nil ever after it has succeeded once. It returns
// ErrExpired, ErrLost or ErrNotHeld if the hold had ended before.
func (p *Permit) Release(ctx context.Context) error { return errSketch }

// Renew sets the end of the lease anew, counted from now. It returns ErrExpired
// or ErrNotHeld if the hold has ended.
func (p *Permit) Renew(ctx context.Context) error { return errSketch }

// Detach stops renewing and keeps the hold until its lease ends, also through
// the client's Close. Then the hold is the token's: Release on this handle does
// nothing and is nil, so that a deferred one need not be taken back.
func (p *Permit) Detach(ctx context.Context) (berth.Token, error) { return berth.Token{}, errSketch }
