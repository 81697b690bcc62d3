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
	// Granted: an ordinary grant; the owner did not hold the lock before.
	Granted Via = "granted"
	// Reentered: by WorkThrough.
	Reentered Via = "reentered"
	// ReenteredExtended: by ExtendAndWorkThrough.
	ReenteredExtended Via = "reentered and extended"
	// Resumed: by Resume.
	Resumed Via = "resumed"
)

// Lock is the handle of a granted claim: one entry of the owner's hold, with its own release.
// The name is free when the last entry has ended. The node renews a Lock until it is released
// or lost, or until the node is closed. A Lock is safe for concurrent use.
type Lock struct {
	face *line.Face
	hold *engine.Hold
	via  Via
}

var _ berth.Hold = (*Lock)(nil)

// ID returns the id of the claim.
func (l *Lock) ID() string { return l.hold.Claim().ID }

// Name returns the lock's name.
func (l *Lock) Name() string { return l.hold.Claim().Name }

// Owner returns the owner that holds the lock: the claim's id if no owner was given.
func (l *Lock) Owner() string { return berth.Owner(l.hold.Context()) }

// Fence returns the fencing token of the grant, which rises with every grant of a name; all
// entries of one hold have the same fence. Pass the token to the system that the lock protects,
// and refuse smaller tokens there; see package fence.
func (l *Lock) Fence() int64 { return l.hold.Fence() }

// Node returns the id of the node that holds the lock.
func (l *Lock) Node() string { return l.hold.Node() }

// Granted returns when this process learned of the grant, or resumed the hold, by the process's
// own clock.
func (l *Lock) Granted() time.Time { return l.hold.Granted() }

// Lease returns the requested lease, berth.Forever for a hold without end. An inner entry has
// the lease of the outermost entry.
func (l *Lock) Lease() time.Duration { return l.hold.Lease() }

// Waited returns how long the acquiring call took.
func (l *Lock) Waited() time.Duration { return l.hold.Waited() }

// Via returns how the lock was acquired.
func (l *Lock) Via() Via { return l.via }

// Context returns the hold's context, which has the owner and the values of the acquiring
// context but ends only with the hold. Its context.Cause matches berth.ErrLost,
// berth.ErrExpired or berth.ErrReleased.
func (l *Lock) Context() context.Context { return l.hold.Context() }

// Within returns a context that carries the owner and ends with ctx or with the hold, whichever
// ends first. Call the CancelFunc when the work under the context is done.
func (l *Lock) Within(ctx context.Context) (context.Context, context.CancelFunc) {
	return l.hold.Within(ctx)
}

// Done returns a channel that is closed when the hold has ended.
func (l *Lock) Done() <-chan struct{} { return l.hold.Context().Done() }

// Err returns nil while the hold lives, and afterwards an error that matches berth.ErrLost,
// berth.ErrExpired or berth.ErrReleased. Err compares the clock itself, so it is right even if
// a timer is late, for example after a suspension. Err of a nil Lock, which Locks.Lock returns
// with an error, is berth.ErrNotHeld.
func (l *Lock) Err() error {
	if l == nil {
		return berth.ErrNotHeld
	}
	return l.hold.Err()
}

// Left returns the time until the local deadline: berth.Forever for no end, 0 once the hold has
// ended. A renewal moves the deadline.
func (l *Lock) Left() time.Duration { return l.hold.Left() }

// Wanted returns a channel that is closed when somebody has asked for the lock back: an operator, or a claim
// that waits with WantAfter. The hold goes on: finish the work early if possible, and release. A server that
// loses its data forgets the request.
func (l *Lock) Wanted() <-chan struct{} { return l.hold.Wanted() }

// Release ends this entry. If it was the last entry, the same script grants the lock to
// the first in line. The hold's context ends before anything is sent. Release may be
// called from several goroutines and more than once; after a success it returns nil.
//
// Release also works after ctx or the hold has ended. Release then waits for at most
// node.Config.CleanupTimeout; if the server has not answered by then, an open node keeps trying in
// the background.
//
// Release returns berth.ErrLost or berth.ErrExpired, which match berth.ErrNotHeld, if the
// server had ended the hold before; berth.ErrReleased if somebody else had released it; or the
// server's error. After the server's error the hold ends with its lease, and Release may be
// called again. Release never touches the lock of a successor. Release of a nil Lock returns
// berth.ErrNotHeld.
func (l *Lock) Release(ctx context.Context) error {
	if l == nil {
		return berth.ErrNotHeld
	}
	return l.hold.Release(ctx)
}

// Extend adds a time to the lease once, for all entries of the owner: whole milliseconds, above
// 0. MaxHold still limits the hold, and a renewal never shortens the extended lease. Extend
// returns the errors of Renew, and berth.ErrInvalidConfig for a bad time. It also returns
// berth.ErrInvalidConfig, sends nothing and changes nothing, if the lease, or all extensions of
// this handle together, would exceed 200 years.
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

// Renew restarts the lease from now, and never shortens it. Locks renew by themselves unless
// NoRenew is set. Renew of an inner entry renews the outermost entry, for all entries. Renew
// returns berth.ErrLost, berth.ErrExpired or berth.ErrReleased if the hold has ended, ctx's
// error, or the server's error.
func (l *Lock) Renew(ctx context.Context) error { return l.hold.Renew(ctx) }

// Detach ends the handle with berth.ErrReleased and stops renewals. The hold stays until its
// lease ends, even if the node is closed. The call restarts a lease that renews by itself; a
// fixed lease goes on. Locks.Resume, in this or any other process, makes a new handle from the
// token. Release of the old handle does nothing and returns nil, so a deferred Release may
// stay.
//
// If this entry has extended its owner's hold, its end no longer gives unused time back, and no
// other entry gives time back while this entry is detached.
//
// Detach returns the errors of Renew. After the server's or ctx's error the hold may or may not
// be detached on the server; a detached hold ends with its lease. The handle lives on: call
// Detach again, or Release.
func (l *Lock) Detach(ctx context.Context) (berth.Token, error) { return l.face.Detach(ctx, l.hold) }
