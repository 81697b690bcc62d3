package qlock

import (
	"context"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/internal/settings"
)

// Via says how a lock was acquired.
type Via string

// The ways to acquire a lock.
const (
	// Granted: the owner did not hold the lock before.
	Granted Via = "granted"
	// Reentered: by WorkThrough.
	Reentered Via = "reentered"
	// ReenteredExtended: by ExtendAndWorkThrough.
	ReenteredExtended Via = "reentered and extended"
	// Resumed: by Resume.
	Resumed Via = "resumed"
)

// Lock is what a claim holds: one entry of its owner, with a release of its own. The
// lock is free when the last entry has ended. The node renews a Lock until it is
// released or lost, or until the node is closed. It is safe for concurrent use.
type Lock struct {
	face *line.Face
	hold *engine.Hold
	via  Via
}

var _ berth.Hold = (*Lock)(nil)

// ID is the id of the claim.
func (l *Lock) ID() string { return l.hold.Claim().ID }

// Name is the lock's name.
func (l *Lock) Name() string { return l.hold.Claim().Name }

// Owner is the owner that holds the lock: the claim's id if no owner was given.
func (l *Lock) Owner() string { return berth.Owner(l.hold.Context()) }

// Fence is the number of the grant, strictly rising per name; all entries of one owner
// have the same. Pass it on to whatever the lock protects, and refuse smaller ones
// there: see package fence.
func (l *Lock) Fence() int64 { return l.hold.Fence() }

// Node is the id of the node that holds the lock.
func (l *Lock) Node() string { return l.hold.Node() }

// Granted is when this process heard of the grant, or resumed the hold, by the
// process's own clock.
func (l *Lock) Granted() time.Time { return l.hold.Granted() }

// Lease is the lease that was asked for, berth.Forever for none. An entry whose owner
// held the lock already has the lease of the outermost entry.
func (l *Lock) Lease() time.Duration { return l.hold.Lease() }

// Waited is how long the acquiring call took.
func (l *Lock) Waited() time.Duration { return l.hold.Waited() }

// Via says how the lock was acquired.
func (l *Lock) Via() Via { return l.via }

// Context returns the hold's context. It has the values of the acquiring context and
// the owner, and ends with the hold, not with the acquiring context. Its context.Cause
// matches berth.ErrLost, berth.ErrExpired or berth.ErrReleased.
func (l *Lock) Context() context.Context { return l.hold.Context() }

// Within returns a context that ends with ctx or with the hold, whichever comes first.
// It carries the owner. Call the CancelFunc when the work under the context is done.
func (l *Lock) Within(ctx context.Context) (context.Context, context.CancelFunc) {
	return l.hold.Within(ctx)
}

// Done is closed when the hold has ended.
func (l *Lock) Done() <-chan struct{} { return l.hold.Context().Done() }

// Err is nil while the hold lives; afterwards it matches berth.ErrLost,
// berth.ErrExpired or berth.ErrReleased. Err compares the clock itself, so it is right
// even when a timer is late, as after a suspension.
// Of a nil Lock, which a Lock call returns beside its error, it is berth.ErrNotHeld.
func (l *Lock) Err() error {
	if l == nil {
		return berth.ErrNotHeld
	}
	return l.hold.Err()
}

// Left is the time until the local deadline: berth.Forever for no end, 0 once the hold
// has ended. A renewal lengthens it.
func (l *Lock) Left() time.Duration { return l.hold.Left() }

// Wanted is closed when somebody has asked for the lock back: an operator, or a claim that waits with
// WantAfter. The lock goes on, and a server that loses its data forgets who has asked. Whoever can, finishes
// its work and releases.
func (l *Lock) Wanted() <-chan struct{} { return l.hold.Wanted() }

// Release ends this entry. If it was the last entry, the same script grants the lock to
// the first in line. The hold's context ends before anything is sent. Release may be
// called from several goroutines and more than once; after a success it returns nil.
//
// Release works after ctx or the hold has ended, too. It then waits for node.Config.CleanupTimeout at
// most; if the server has not answered by then, an open node goes on in the
// background.
//
// It returns berth.ErrLost or berth.ErrExpired, which match berth.ErrNotHeld, if the
// server had ended the hold before; berth.ErrReleased if somebody else had released it;
// or the server's error. After the server's error the hold ends with its lease, and
// Release may be called again. Release never touches the lock of a successor.
// Of a nil Lock it returns berth.ErrNotHeld.
func (l *Lock) Release(ctx context.Context) error {
	if l == nil {
		return berth.ErrNotHeld
	}
	return l.hold.Release(ctx)
}

// Extend adds a time to the lease once, for all entries of the owner: whole
// milliseconds, above 0. MaxHold still bounds the lease. A renewal never shortens it.
// Its errors are those of Renew, and berth.ErrInvalidConfig, also if the end of the
// lease, or all extensions of this handle together, would be more than 200 years off;
// then nothing is sent, and the lock stays as it is.
func (l *Lock) Extend(ctx context.Context, by time.Duration) error {
	if err := checkExtension(by); err != nil {
		return err
	}
	return l.hold.Extend(ctx, by)
}

func checkExtension(by time.Duration) error {
	if by <= 0 || by == berth.Forever {
		return berth.Invalid("by", "%s is no time to extend by", by)
	}
	return settings.Duration("by", by)
}

// Renew starts the lease anew, and never shortens it. Locks renew by themselves unless
// NoRenew was set. Renew of an inner entry renews the outermost entry, for all. Renew
// returns berth.ErrLost, berth.ErrExpired or berth.ErrReleased if the hold has ended,
// ctx's error, or the server's.
func (l *Lock) Renew(ctx context.Context) error { return l.hold.Renew(ctx) }

// Detach stops renewing and keeps the hold until its lease ends, also through Close of
// the node. A lease that renews by itself starts anew with the call; a fixed one goes
// on. The handle ends with berth.ErrReleased. Whoever has the token, this process too,
// gets a new handle by Locks.Resume. A Release of the old handle does nothing and
// returns nil, so a deferred one may stay. An entry that has extended its owner's hold
// no longer gives anything back, and no other entry does while this one is detached.
//
// Its errors are those of Renew. After the server's or ctx's error the hold may or may
// not be detached on the server; if it is, it ends with its lease. The handle lives on:
// call Detach again, or Release.
func (l *Lock) Detach(ctx context.Context) (berth.Token, error) { return l.face.Detach(ctx, l.hold) }
