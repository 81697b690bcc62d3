package qlock

import (
	"context"
	"time"
)

// Access says where in the line a claim stands. The zero value stands for
// Config.Access in LockOptions, and for Queued in Config.
type Access int

// The ways to stand in line.
const (
	// Queued: first come, first served.
	Queued Access = iota + 1
	// Random: a place drawn once among those that wait.
	Random
	// LIFO: last come, first served, behind the others of its priority.
	LIFO
)

// Conflict says what happens when the owner of a claim holds the name already.
// Owners are given by berth.WithOwner, and by the ctx of a hold.
type Conflict int

// The conflict strategies.
const (
	// FailDeadlock: the call returns ErrDeadlock at once.
	FailDeadlock Conflict = iota
	// Wait: the claim stands in line behind its owner's hold. It is refused
	// with ErrDeadlock where neither that hold nor the wait has an end.
	Wait
	// WorkThrough: the claim is granted at once and ends with the outer one.
	WorkThrough
	// ExtendAndWorkThrough: the same, and the outer deadline is moved by the
	// inner claim's lease; what is unused is given back at the inner's end.
	ExtendAndWorkThrough
)

// LockOptions are the settings of one claim. Nil stands for the defaults.
type LockOptions struct {
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
	// Access is how the claim stands in line. Default Config.Access.
	Access Access
	// Conflict is what happens if the owner holds the name already. Default
	// FailDeadlock.
	Conflict Conflict
	// QueueTTL moves the waiting claim to the end of the line once each such
	// period; 0 for never. Default 0.
	QueueTTL time.Duration
	// MaxAttempts bounds the wait to so many periods of RetryDelay, the first
	// at once; 0 for no such limit. Nothing polls. Default 0.
	MaxAttempts int
	// RetryDelay is one period of MaxAttempts. Default 200 ms.
	RetryDelay time.Duration
	// RetryJitter is drawn from 0 up to it and added to each RetryDelay;
	// negative for none. Default 25 ms.
	RetryJitter time.Duration
	// DetailedErrors adds the holder and the line to an *AcquireError. It can
	// be turned on for a call, not off. Default Config.DetailedErrors.
	DetailedErrors bool
}

// Lock waits in line until it has the lock or ctx ends. The lock is never nil
// without an error. It returns a *berth.AcquireError, which matches
// ErrNotAcquired; ErrBusy if others kept it waiting for too long; ctx.Err() and
// context.Cause(ctx) if ctx ended; and ErrDeadlock by the conflict strategy.
func (c *Client) Lock(ctx context.Context, name string, opts *LockOptions) (*Lock, error) {
	return nil, errSketch
}

// TryLock is Lock that never waits: it matches ErrBusy instead, with the reason
// held or queued ahead. MaxWait, MaxAttempts and QueueTTL must not be set.
func (c *Client) TryLock(ctx context.Context, name string, opts *LockOptions) (*Lock, error) {
	return nil, errSketch
}

// Do locks, runs fn and releases. The ctx of fn ends with ctx or with the hold,
// whichever comes first, and carries the claim's owner. Do returns the error of
// Lock, or fn's, joined with ErrLost or ErrExpired if the hold ended before fn
// returned. Goroutines that fn starts share the owner, see berth.WithOwner.
func (c *Client) Do(ctx context.Context, name string, opts *LockOptions, fn func(context.Context) error) error {
	return errSketch
}

// TryDo is Do over TryLock.
func (c *Client) TryDo(ctx context.Context, name string, opts *LockOptions, fn func(context.Context) error) error {
	return errSketch
}

// LockAll locks all the names or none, in an order that is the same for every
// caller, so that two that share names never wait for each other. Names that
// repeat count once. What it holds already is renewed while it waits, NoRenew
// or not. MaxWait and MaxAttempts bound all waits together. Errors are those of
// Lock, for the name that was not acquired.
func (c *Client) LockAll(ctx context.Context, names []string, opts *LockOptions) (*LockSet, error) {
	return nil, errSketch
}

// TryLockAll is LockAll that never waits.
func (c *Client) TryLockAll(ctx context.Context, names []string, opts *LockOptions) (*LockSet, error) {
	return nil, errSketch
}

// DoAll is Do over LockAll.
func (c *Client) DoAll(ctx context.Context, names []string, opts *LockOptions, fn func(context.Context) error) error {
	return errSketch
}

// TryDoAll is Do over TryLockAll.
func (c *Client) TryDoAll(ctx context.Context, names []string, opts *LockOptions, fn func(context.Context) error) error {
	return errSketch
}

// Fence is the fence of the lock of that name under which ctx runs: the ctx of
// Do or DoAll, of Within or Context of the handle, or one made from them. It is 0, which is
// below every fence, if ctx runs under none.
func (c *Client) Fence(ctx context.Context, name string) int64 { return 0 }
