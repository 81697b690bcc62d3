package qlock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/internal/settings"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// Lock waits in line until the lock is granted, ctx ends or MaxWait has passed. The
// lock is never nil without an error.
//
// If the lock is not granted, Lock returns a *berth.AcquireError, which matches
// berth.ErrNotAcquired. The error also matches berth.ErrBusy if the wait for others timed out,
// berth.ErrDeadlock if the Conflict option refused the claim, and berth.ErrTooManyEntries if
// the owner has 100 entries. When ctx ends, Lock returns at once; the error then also matches
// ctx.Err() and context.Cause(ctx), and the node removes the claim in the background. Lock
// returns berth.ErrInvalidConfig for bad options and berth.ErrClosed on a closed node.
func (l *Locks) Lock(ctx context.Context, name string, opts *LockOptions) (*Lock, error) {
	r, err := l.request(ctx, opts, true, name)
	if err != nil {
		return nil, err
	}
	return r.lock(ctx, name, r.start)
}

// TryLock takes the lock if nobody holds it or waits for it. TryLock itself never waits in line.
// If the server does not answer, the call is repeated within node.Config.Retry.
//
// TryLock returns the errors of Lock. The reason in the *berth.AcquireError is ReasonHeld if the
// lock is held, and ReasonQueuedAhead if other claims wait. MaxWait, WantAfter, Attempts and
// RequeueEvery are refused in opts, and ignored in Config.Defaults.
func (l *Locks) TryLock(ctx context.Context, name string, opts *LockOptions) (*Lock, error) {
	r, err := l.request(ctx, opts, false, name)
	if err != nil {
		return nil, err
	}
	return r.lock(ctx, name, r.start)
}

// Do locks the name, runs f, and releases the lock, even if f panics. The context of f carries
// the owner, and ends with ctx or with the hold, whichever ends first. Goroutines that f starts
// with this context share the owner.
//
// If f did not run, Do returns Lock's error. Otherwise Do returns f's error. If the hold ended
// before f returned, Do joins the hold's *berth.EndError; the joined error matches
// context.Canceled and context.DeadlineExceeded only if ctx itself has ended. Do repeats a
// release without an answer within node.Config.Retry; if the release fails, Do sends the event
// release_failed and returns no error for it. A nil f is refused with berth.ErrInvalidConfig.
func (l *Locks) Do(ctx context.Context, name string, opts *LockOptions, f func(context.Context) error) error {
	if err := settings.Function(f != nil); err != nil {
		return err
	}
	lock, err := l.Lock(ctx, name, opts)
	if err != nil {
		return err
	}
	return lock.hold.Do(ctx, f)
}

// TryDo is like Do, but uses TryLock instead of Lock.
func (l *Locks) TryDo(ctx context.Context, name string, opts *LockOptions, f func(context.Context) error) error {
	if err := settings.Function(f != nil); err != nil {
		return err
	}
	lock, err := l.TryLock(ctx, name, opts)
	if err != nil {
		return err
	}
	return lock.hold.Do(ctx, f)
}

// Fence returns the fence of the lock that ctx was made under, by Do or by a handle of this
// node and name. Fence returns 0 if ctx was not made under such a lock; every check of fences
// refuses 0.
func (l *Locks) Fence(ctx context.Context, name string) int64 {
	hold := l.held(ctx, name)
	if hold == nil {
		return 0
	}
	return hold.Fence()
}

// Wanted returns Lock.Wanted of the lock that ctx was made under, like Fence. Wanted returns nil,
// which is never closed, if ctx was not made under such a lock.
func (l *Locks) Wanted(ctx context.Context, name string) <-chan struct{} {
	hold := l.held(ctx, name)
	if hold == nil {
		return nil
	}
	return hold.Wanted()
}

// Resume takes over a detached lock, whichever process detached it. The node renews the lock if
// it was renewed before.
//
// Resume returns berth.ErrNotHeld if the hold has ended, berth.ErrReleased if another node has
// resumed the hold or an operator has released it, and berth.ErrLost if this node was found
// dead meanwhile. Resume returns berth.ErrInvalidConfig for a token of another kind or
// namespace, and for a lock that is not detached.
func (l *Locks) Resume(ctx context.Context, token berth.Token) (*Lock, error) {
	if l.bad != nil {
		return nil, l.bad
	}
	face, hold, err := l.p.Resume(ctx, keyspace.Lock, token, func(c *engine.Claim) { c.WarnAfter = l.warn })
	if err != nil {
		return nil, err
	}
	return &Lock{face: face, hold: hold, via: Resumed}, nil
}

// request is one call of Lock or LockAll, with the values that all its claims share.
type request struct {
	LockOptions
	l       *Locks
	owner   string
	wait    bool
	endless bool          // the wait has no end
	start   time.Duration // of the call, on the node's clock
	bound   time.Duration // limit of all attempts together, 0 for none
}

// ask has the arguments that are specific to lock_acquire.
type ask struct {
	access   Access
	conflict Conflict
	draw     uint32 // the place of a Random claim, drawn by the caller so that a replay is equal
	endless  bool   // the wait has no end
	single   bool   // one attempt, which never waits
}

// request checks the arguments of a call for locks of these names.
func (l *Locks) request(ctx context.Context, opts *LockOptions, wait bool, names ...string) (r request, err error) {
	if l.bad != nil {
		return r, l.bad
	}
	for _, name := range names {
		if err := keyspace.CheckName(name); err != nil {
			return r, err
		}
	}
	r = request{l: l, owner: berth.Owner(ctx), wait: wait}
	if r.LockOptions, err = l.options(opts, wait); err != nil {
		return r, err
	}
	_, ends := ctx.Deadline()
	r.endless = !ends && r.MaxWait == 0 && r.Attempts.Max == 0
	r.start, r.bound = l.p.Clock.Now(), r.Attempts.bound()
	return r, settings.Text("owner", r.owner)
}

// claim returns a new claim for one of the names.
func (r *request) claim(f *line.Face, name string) *engine.Claim {
	q := &ask{access: r.Access, conflict: r.Conflict, endless: r.endless, single: r.Attempts.Max == 1}
	if r.Access == Random {
		q.draw = rand.Uint32()
	}
	return &engine.Claim{
		ID: f.Engine.ClaimID(), Kind: keyspace.Lock, Name: name, MayWait: r.wait && !q.single, Capacity: 1, Attrs: r.Attrs,
		RequeueEvery: r.RequeueEvery, WantAfter: r.WantAfter, WarnAfter: r.l.warn, Extends: r.extends(), Request: q,
		Record: engine.Record{
			Weight: 1, Wait: r.l.wait, Lease: r.Lease, MaxHold: r.MaxHold,
			NoRenew: r.NoRenew || r.Lease == berth.Forever, Phase: 'w', Priority: r.Priority,
			Node: f.ID, Owner: r.owner, Label: r.l.p.Settings.Label, Meta: r.Meta,
		},
	}
}

// lock acquires one name. If the node is replaced meanwhile, lock makes a new claim under the
// next node, since the former place is gone with its node.
func (r *request) lock(ctx context.Context, name string, start time.Duration) (*Lock, error) {
	for now := start; ; now = r.l.p.Clock.Now() {
		face := r.l.face()
		claim := r.claim(face, name)
		maxWait, attempts := r.left(now)
		claim.Attempts, claim.Before = attempts, now-start
		hold, err := face.Engine.Acquire(ctx, claim, maxWait)
		if err == nil {
			return &Lock{face: face, hold: hold, via: via(hold, r.Conflict)}, nil
		}
		again, err := r.l.p.Replaced(ctx, face.Node, err)
		if again {
			continue
		}
		r.ownHold(ctx, face, name, err)
		return nil, r.detailed(ctx, name, err)
	}
}

// left returns what is left of the limits that all waits share, at least a millisecond; 0 for
// no limit.
func (r *request) left(now time.Duration) (maxWait, attempts time.Duration) {
	return line.Rest(r.MaxWait, now-r.start), line.Rest(r.bound, now-r.start)
}

// via returns how a hold was acquired.
func via(hold *engine.Hold, conflict Conflict) Via {
	switch {
	case !hold.Reentered():
		return Granted
	case conflict == ExtendAndWorkThrough:
		return ReenteredExtended
	}
	return Reentered
}

// ownHold adds the owner's holding claim to an ErrDeadlock. The cause may surprise the caller: goroutines that share a
// context share its owner, and a restarted program with a fixed owner may meet its former hold.
func (r *request) ownHold(ctx context.Context, f *line.Face, name string, err error) {
	var refusal *berth.AcquireError
	if !errors.As(err, &refusal) || refusal.Reason != berth.ReasonDeadlock {
		return
	}
	ctx, cancel := scriptkit.Limit(ctx, r.l.p.Settings.CallTimeout)
	defer cancel()
	_, entries, failed := f.Decide.Entries(ctx, name)
	if failed != nil || len(entries) == 0 || entries[0].Err != nil {
		return // the caller has the error anyway
	}
	h := &entries[0].Entry
	process := "of this process"
	if h.Node != f.ID {
		process = "of node " + text.Word(h.Node)
		if h.Label != "" {
			process += " (" + text.Word(h.Label) + ")"
		}
	}
	says := fmt.Sprintf("claim %s %s has held it for %s, since %s", text.Word(h.ID), process, text.Human(h.Held), h.Granted.UTC().Format(time.RFC3339))
	if h.Node != f.ID && !h.NoRenew && !h.Detached && h.Lease != berth.Forever { // a renewal sets what is left to the lease
		says += ", last heard of " + text.Human(max(0, h.Lease-h.Left)) + " ago"
	}
	refusal.Cause = fmt.Errorf("%w %s: %s", refusal.Cause, text.Word(h.Owner), says)
}

// detailWaiters is the number of waiters in an error.
const detailWaiters = 10

// detailed adds holders and waiters to an error caused by others, if the caller asked for
// details. The claims are read after the refusal, so they may have changed.
func (r *request) detailed(ctx context.Context, name string, err error) error {
	var refusal *berth.AcquireError
	if !r.DetailedErrors || !errors.As(err, &refusal) || !refusal.Is(berth.ErrBusy) && refusal.Reason != berth.ReasonDeadlock && refusal.Reason != berth.ReasonTooManyEntries {
		return err
	}
	ctx, cancel := scriptkit.Limit(context.WithoutCancel(ctx), r.l.p.Settings.CallTimeout)
	defer cancel()
	// A failure loses nothing: the caller has the error anyway.
	for h, err := range r.l.face().Holders(ctx, name) {
		if err == nil && h.ID != refusal.Claim { // the caller's own claim may not have been removed yet
			refusal.Holders = append(refusal.Holders, h)
		}
	}
	for w, err := range r.l.face().Waiters(ctx, name) {
		if err != nil || len(refusal.Waiters) == detailWaiters {
			break
		}
		if w.ID != refusal.Claim {
			refusal.Waiters = append(refusal.Waiters, w)
		}
	}
	return err
}
