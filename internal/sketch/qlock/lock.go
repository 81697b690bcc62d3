package qlock

import (
	"context"
	"time"

	"github.com/berth-go/berth"
)

var _ berth.Hold = (*Lock)(nil)

// Process says how a lock was acquired.
type Process string

// The ways to acquire a lock.
const (
	// Granted: the owner did not hold the name before.
	Granted Process = "granted"
	// Reentered: by WorkThrough.
	Reentered Process = "reentered"
	// ReenteredExtended: by ExtendAndWorkThrough.
	ReenteredExtended Process = "reentered and extended"
)

// Lock is a hold on a lock: one entry of its owner, with a release of its own.
// The name is free when the last entry has ended. Its methods may be called by
// many goroutines at once.
type Lock struct{}

// ID is the id of the claim.
func (l *Lock) ID() string { return "" }

// Name is the name of the lock.
func (l *Lock) Name() string { return "" }

// Fence is the number of the grant. All entries of an owner have the same.
func (l *Lock) Fence() int64 { return 0 }

// Waited is how long the acquiring call took.
func (l *Lock) Waited() time.Duration { return 0 }

// Process says how the lock was acquired.
func (l *Lock) Process() Process { return "" }

// Holder is the hold as listings show it, from what this process knows.
func (l *Lock) Holder() Holder { return Holder{} }

// Context carries the values of the acquiring ctx and the claim's owner, but
// not the ctx's end; it ends with the hold, and its cause says why.
func (l *Lock) Context() context.Context { return context.Background() }

// Left is how long the holder may still believe in the lock if nothing renews
// it: berth.Forever for no end, 0 once it has ended.
func (l *Lock) Left() time.Duration { return 0 }

// Within returns a ctx that ends with ctx or with the hold, whichever comes
// first, and whose cause then says why; cancel it when it is not needed any
// more. It carries the claim's owner. Do runs its function within the hold.
func (l *Lock) Within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithCancel(ctx)
}

// Done is closed when the hold has ended.
func (l *Lock) Done() <-chan struct{} { return nil }

// Err is nil while the hold lives; then ErrLost, ErrExpired, ErrReleased or
// ErrClosed.
func (l *Lock) Err() error { return errSketch }

// Release gives the lock back. It works after ctx has ended, for at most
// CleanupTimeout more, and is nil ever after it has succeeded once. It returns
// ErrExpired, ErrLost or ErrNotHeld if the hold had ended before.
func (l *Lock) Release(ctx context.Context) error { return errSketch }

// Extend moves the end of the lease by d, once; renewals keep it where they
// would shorten it. It returns ErrExpired or ErrNotHeld if the hold has ended.
func (l *Lock) Extend(ctx context.Context, d time.Duration) error { return errSketch }

// Renew sets the end of the lease anew, counted from now. It returns ErrExpired
// or ErrNotHeld if the hold has ended. An entry that is not the outermost
// follows the outer one, and Renew renews that.
func (l *Lock) Renew(ctx context.Context) error { return errSketch }

// Detach stops renewing and keeps the hold until its lease ends, also through
// the client's Close. Then the hold is the token's: Release on this handle does
// nothing and is nil, so that a deferred one need not be taken back.
func (l *Lock) Detach(ctx context.Context) (berth.Token, error) { return berth.Token{}, errSketch }
