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
// If it did not get the lock, Lock returns a *berth.AcquireError, which matches
// berth.ErrNotAcquired: also berth.ErrBusy if others kept it waiting for too long,
// berth.ErrDeadlock by the conflict strategy, and berth.ErrTooManyEntries if the owner
// has 100 entries. When ctx ends, Lock returns at once; the error then also matches
// ctx.Err() and context.Cause(ctx), and the node removes the rest of the claim in the
// background. Lock returns berth.ErrInvalidConfig for bad options and berth.ErrClosed
// on a closed node.
func (l *Locks) Lock(ctx context.Context, name string, opts *LockOptions) (*Lock, error) {
	r, err := l.request(ctx, opts, true, name)
	if err != nil {
		return nil, err
	}
	return r.lock(ctx, name, r.start)
}

// TryLock takes the lock if nobody holds it and nobody waits for it. TryLock
// never waits in line. If the server does not answer, the call is repeated within
// node.Config.Retry. Its errors are those of Lock; the reason in the *berth.AcquireError is
// ReasonHeld if the lock is held, and ReasonQueuedAhead if others wait. MaxWait,
// WantAfter, Attempts and RequeueEvery are refused in opts, and do not count in Config.Defaults.
func (l *Locks) TryLock(ctx context.Context, name string, opts *LockOptions) (*Lock, error) {
	r, err := l.request(ctx, opts, false, name)
	if err != nil {
		return nil, err
	}
	return r.lock(ctx, name, r.start)
}

// Do locks, runs f under the lock and releases it, also when f panics. The context of f
// carries the owner, and ends with ctx or with the hold, whichever comes first.
// Goroutines that f starts with its context share the owner.
//
// If f did not run, Do returns Lock's error. Otherwise Do returns f's error. If the
// hold ended before f, Do joins the *berth.EndError of the hold; the joined error
// matches context.Canceled and context.DeadlineExceeded only if ctx itself has ended.
// Do repeats a release that the server does not answer, within node.Config.Retry; a release
// that fails is the event release_failed, and no error. A nil f is refused with
// berth.ErrInvalidConfig.
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

// TryDo is Do by TryLock instead of Lock.
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

// Fence returns the fence of the lock that ctx was made under: the context of Do, or of
// a handle of this node and name. It returns 0 if ctx was not made under such a lock;
// every check of fences refuses 0.
func (l *Locks) Fence(ctx context.Context, name string) int64 {
	hold := l.held(ctx, name)
	if hold == nil {
		return 0
	}
	return hold.Fence()
}

// Wanted is the Wanted of the lock that ctx was made under, as Fence has it. It returns nil, which is
// never closed, if ctx was not made under such a lock.
func (l *Locks) Wanted(ctx context.Context, name string) <-chan struct{} {
	hold := l.held(ctx, name)
	if hold == nil {
		return nil
	}
	return hold.Wanted()
}

// Resume takes up a lock that was detached, in this or another process. The node
// renews it if it was renewed before. Resume returns berth.ErrNotHeld if the hold has
// ended, berth.ErrReleased if another node has resumed it or an operator has released
// it, berth.ErrLost if this node was found dead meanwhile, and berth.ErrInvalidConfig
// for a token of another kind or namespace, or for a lock that is not detached.
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

// request is one Lock or LockAll: what all its claims share.
type request struct {
	LockOptions
	l       *Locks
	owner   string
	wait    bool
	endless bool          // the wait has no end
	start   time.Duration // of the call, on the node's clock
	bound   time.Duration // of all attempts together, 0 for none
}

// ask is what only lock_acquire takes of a claim.
type ask struct {
	access   Access
	conflict Conflict
	draw     uint32 // where a Random claim stands: it comes with the call, so that a replay is equal
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

// claim makes the claim for one of the names.
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

// lock takes one claim from its start to its hold. If the node is replaced meanwhile,
// lock makes a new claim under the next node: the former place is gone with its node.
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

// left is what is left now of the bounds that all waits share, at least a millisecond;
// 0 for no bound.
func (r *request) left(now time.Duration) (maxWait, attempts time.Duration) {
	return line.Rest(r.MaxWait, now-r.start), line.Rest(r.bound, now-r.start)
}

// via says how a hold came about.
func via(hold *engine.Hold, conflict Conflict) Via {
	switch {
	case !hold.Reentered():
		return Granted
	case conflict == ExtendAndWorkThrough:
		return ReenteredExtended
	}
	return Reentered
}

// ownHold adds to the error of a claim that would wait for its own owner which claim holds for that owner: goroutines that share
// a context share its owner, and a program with an owner of a fixed name finds itself there when it is started again.
func (r *request) ownHold(ctx context.Context, f *line.Face, name string, err error) {
	var refusal *berth.AcquireError
	if !errors.As(err, &refusal) || refusal.Reason != berth.ReasonDeadlock {
		return
	}
	ctx, cancel := scriptkit.Limit(ctx, r.l.p.Settings.CallTimeout)
	defer cancel()
	_, entries, failed := f.Decide.Entries(ctx, name)
	if failed != nil || len(entries) == 0 || entries[0].Err != nil {
		return // the caller has the error either way
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

// detailWaiters is how many waiters an error tells of.
const detailWaiters = 10

// detailed adds who holds and who waits to an error because of others, if the caller
// asked for that. It reads them after the fact: others may be in the way by then.
func (r *request) detailed(ctx context.Context, name string, err error) error {
	var refusal *berth.AcquireError
	if !r.DetailedErrors || !errors.As(err, &refusal) || !refusal.Is(berth.ErrBusy) && refusal.Reason != berth.ReasonDeadlock && refusal.Reason != berth.ReasonTooManyEntries {
		return err
	}
	ctx, cancel := scriptkit.Limit(context.WithoutCancel(ctx), r.l.p.Settings.CallTimeout)
	defer cancel()
	// A failure loses nothing: the caller has the error either way.
	for h, err := range r.l.face().Holders(ctx, name) {
		if err == nil && h.ID != refusal.Claim { // its own may not have been removed yet
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
