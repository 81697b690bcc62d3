package allocator

import (
	"context"
	"time"

	"github.com/berth-go/berth"
)

// AllocateOptions are the settings of one claim. Nil stands for the defaults.
type AllocateOptions struct {
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
	// Bind names a binding: the claim gets the resource that is bound to it,
	// if that is free, and another one otherwise, which is bound to it then.
	// Default "", none.
	Bind string
	// BindFor is how long the binding lasts, counted from the grant. Default
	// 1 h.
	BindFor time.Duration
}

// Allocate waits in line until a resource is its own or ctx ends. The
// allocation is never nil without an error. It returns a *berth.AcquireError,
// which matches ErrNotAcquired; ErrBusy if others kept it waiting for too long;
// ctx.Err() and context.Cause(ctx) if ctx ended; and, as its Cause, the error
// of Open. An empty pool is waited for, too.
func (p *Pool[T]) Allocate(ctx context.Context, opts *AllocateOptions) (*Allocation[T], error) {
	return nil, errSketch
}

// TryAllocate is Allocate that never waits: it matches ErrBusy instead, with
// the reason full or queued ahead. MaxWait must not be set.
func (p *Pool[T]) TryAllocate(ctx context.Context, opts *AllocateOptions) (*Allocation[T], error) {
	return nil, errSketch
}

// AllocateHealthy is Allocate that asks Healthy before it returns: a resource
// that is not healthy is released with a rest, and the next one is taken.
// MaxWait bounds all of it together.
func (p *Pool[T]) AllocateHealthy(ctx context.Context, opts *AllocateOptions) (*Allocation[T], error) {
	return nil, errSketch
}

// Do allocates, runs fn and releases. The ctx of fn ends with ctx or with the
// hold, whichever comes first, and carries the claim's owner; the allocation is
// only valid within fn. Do returns the error of Allocate, or fn's, joined with
// ErrLost or ErrExpired if the hold ended before fn returned. Goroutines that
// fn starts share the owner, see berth.WithOwner.
func (p *Pool[T]) Do(ctx context.Context, opts *AllocateOptions, fn func(context.Context, *Allocation[T]) error) error {
	return errSketch
}

// TryDo is Do over TryAllocate.
func (p *Pool[T]) TryDo(ctx context.Context, opts *AllocateOptions, fn func(context.Context, *Allocation[T]) error) error {
	return errSketch
}

// Fence is the fence of the allocation from this pool under which ctx runs: the
// ctx of Do, of Allocation.Within or Allocation.Context, or one made from them. It is 0, which
// is below every fence, if ctx runs under none.
func (p *Pool[T]) Fence(ctx context.Context) int64 { return 0 }

// Resume takes up a detached hold of this pool, whose old handle ends with
// ErrReleased. It returns ErrNotHeld or ErrExpired if the hold has ended.
func (p *Pool[T]) Resume(ctx context.Context, token berth.Token) (*Allocation[T], error) {
	return nil, errSketch
}
