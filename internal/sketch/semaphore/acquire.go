package semaphore

import (
	"context"
	"time"
)

// Semaphore is a semaphore as this client sees it. Its methods may be called
// by many goroutines at once.
type Semaphore struct{}

// AcquireOptions are the settings of one claim. Nil stands for the defaults.
type AcquireOptions struct {
	// Weight is how much of the capacity the claim takes. Default 1.
	Weight int
	// Priority is -128 to 127; higher goes first. Default 0.
	Priority int
	// Lease is how long the hold lasts without a renewal; at least 20 ms,
	// whole milliseconds, or berth.Forever. Default Config.Lease.
	Lease time.Duration
	// NoRenew leaves renewing to the caller: the hold ends with ErrExpired
	// when its lease does. Default false.
	NoRenew bool
	// MaxHold ends the hold with ErrExpired, renewed or not; 0 for no such
	// limit. Default 0.
	MaxHold time.Duration
	// MaxWait bounds the wait beside ctx; 0 for no such limit. Default 0.
	MaxWait time.Duration
	// Meta is stored with the claim and shown in listings: keys and values of
	// any bytes, 16 KiB together. Default nil.
	Meta map[string]string
	// Attrs go to the observer with every event of this claim, and nowhere
	// else. Default nil.
	Attrs map[string]any
}

// Name is the name of the semaphore.
func (s *Semaphore) Name() string { return "" }

// Acquire waits in line until it gets its weight or ctx ends. The permit is
// never nil without an error. It returns a *berth.AcquireError, which matches
// ErrNotAcquired; ErrBusy if others kept it waiting for too long; and ctx.Err()
// and context.Cause(ctx) if ctx ended.
func (s *Semaphore) Acquire(ctx context.Context, opts *AcquireOptions) (*Permit, error) {
	return nil, errSketch
}

// TryAcquire is Acquire that never waits: it matches ErrBusy instead, with the
// reason full or queued ahead. MaxWait must not be set.
func (s *Semaphore) TryAcquire(ctx context.Context, opts *AcquireOptions) (*Permit, error) {
	return nil, errSketch
}

// Do acquires, runs fn and releases. The ctx of fn ends with ctx or with the
// hold, whichever comes first, and carries the claim's owner. Do returns the
// error of Acquire, or fn's, joined with ErrLost or ErrExpired if the hold
// ended before fn returned. Goroutines that fn starts share the owner, see
// berth.WithOwner.
func (s *Semaphore) Do(ctx context.Context, opts *AcquireOptions, fn func(context.Context) error) error {
	return errSketch
}

// TryDo is Do over TryAcquire.
func (s *Semaphore) TryDo(ctx context.Context, opts *AcquireOptions, fn func(context.Context) error) error {
	return errSketch
}

// Fence is the fence of the permit of this semaphore under which ctx runs: the
// ctx of Do, of Permit.Within or Permit.Context, or one made from them. It is 0, which is
// below every fence, if ctx runs under none.
func (s *Semaphore) Fence(ctx context.Context) int64 { return 0 }
